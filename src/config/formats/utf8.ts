/** Text of a file in UTF-8. */

/** Decodes bytes. Throws an Error that names their encoding. */
export function utf8Text(bytes: Uint8Array): string {
  const [a, b] = bytes
  const isMarked = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)
  // The first character of a configuration is ASCII, so one of its two bytes in UTF-16 is zero.
  if (isMarked || a === 0 || b === 0) throw new Error('it is UTF-16: save it as UTF-8')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Error('it is not UTF-8: save it as UTF-8')
  }
}
