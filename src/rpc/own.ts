/** A text in memory of its own. A part of a text keeps all of it in memory: what is kept for long has to be copied. */

export function own(text: string): string
export function own(text: string | undefined): string | undefined
export function own(text: string | undefined): string | undefined {
  // Putting two texts together costs nothing; taking a part of the whole makes V8 copy it.
  return text === undefined ? undefined : ` ${text}`.slice(1)
}
