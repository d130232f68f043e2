/**
 * Copies a text into memory of its own. A substring keeps the whole text in memory, so texts that are stored for long must
 * be copied.
 */
export function own<T extends string | undefined>(text: T): T {
  // Concatenation is lazy; taking a substring of it makes V8 copy the text.
  return text === undefined ? text : (` ${text}`.slice(1) as T)
}
