/** Colours texts for a terminal. */
import { styleText } from 'node:util'

export type Colour = 'red' | 'green' | 'yellow' | 'blue' | 'gray' | 'dim' | 'bold'
/** Colours a text, if colours are on. */
export type Paint = (colour: Colour, text: string) => string

/** Returns a function that colours texts, or leaves them unchanged. */
export function painter(isOn: boolean): Paint {
  // The caller has decided; by default Node.js would look at stdout, which may not be the stream of the text.
  return (colour, text) => (isOn ? styleText(colour, text, { validateStream: false }) : text)
}

/** The painter for a stream: colours are on at a terminal, unless the environment says no. */
export function painterFor(stream: object, env: Readonly<Record<string, string | undefined>>): Paint {
  const isTerminal = 'isTTY' in stream && stream.isTTY === true
  return painter(isTerminal && env['NO_COLOR'] === undefined && env['TERM'] !== 'dumb')
}
