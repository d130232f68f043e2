/** States that nobody has given out: made from real ones by changing them, and real ones in the wrong place. */
import { below, oneOf, type Random } from './random.js'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** So many states made from a real one, none of which is that. */
export function* forgeries(real: string, other: string, random: Random, count: number): Iterable<[string, unknown]> {
  yield* SIMPLE
  for (let end = 0; end < real.length; end += Math.ceil(real.length / 40))
    yield [`cut after ${end}`, real.slice(0, end)]
  yield ['a character more', `${real}A`]
  yield ['padding', `${real}=`]
  yield ['a space before it', ` ${real}`]
  yield ['a line break in it', `${real.slice(0, 20)}\n${real.slice(20)}`]
  yield ['small letters', real.toLowerCase() === real ? real.toUpperCase() : real.toLowerCase()]
  yield ['twice', real + real]
  yield ['an array', [real]]
  yield ['an object', { state: real }]
  for (let n = 1; n <= 8; n++) {
    const at = Math.floor((real.length * n) / 9)
    yield [`the first ${at} characters of one and the rest of another`, real.slice(0, at) + other.slice(at)]
  }
  for (let n = 0; n < count; n++) {
    const at = below(random, real.length)
    const letter = oneOf(
      random,
      [...ALPHABET].filter((each) => each !== real[at]),
    )
    const forged = real.slice(0, at) + letter + real.slice(at + 1)
    // The last character may have bits that say nothing.
    if (Buffer.from(forged, 'base64url').equals(Buffer.from(real, 'base64url'))) continue
    yield [`character ${at} is ${letter}`, forged]
  }
}

const SIMPLE: [string, unknown][] = [
  ['nothing', ''],
  ['x', 'x'],
  ['null', null],
  ['a number', 7],
  ['{}', {}],
  ['JSON', '{"id":1}'],
  ['base64 of JSON', Buffer.from('{"id":1}').toString('base64url')],
  ['zeros', 'A'.repeat(300)],
  ['10 KB', 'x'.repeat(10_000)],
  ['1 MB', 'x'.repeat(1_000_000)],
  ['no base64', '§$%&'.repeat(50)],
]
