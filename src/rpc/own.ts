/** A text in memory of its own. A part of a text keeps all of it in memory: what is kept for long has to be copied. */
export function own<T extends string | undefined>(text: T): T {
  // Putting two texts together costs nothing; taking a part of the whole makes V8 copy it.
  return text === undefined ? text : (` ${text}`.slice(1) as T)
}
