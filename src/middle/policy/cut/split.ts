/** Splits texts into parts of so many bytes of UTF-8, between characters. Joined, the parts are the text again. */

const encoder = new TextEncoder()

/** The parts; one if the text is short enough. `bytes` has to be 4 or more. */
export function partsOf(text: string, bytes: number): readonly string[] {
  if (text.length * 3 <= bytes) return [text]
  const parts: string[] = []
  // Only measures how many characters fit.
  const scratch = new Uint8Array(bytes)
  for (let at = 0; at < text.length; ) {
    // No character is shorter than a byte, and half of a pair at the end of this slice takes three: it never fits.
    const { read } = encoder.encodeInto(text.slice(at, at + bytes), scratch)
    parts.push(text.slice(at, at + read))
    at += read
  }
  return parts
}

/** Whether a text has more bytes than that. */
export function isLonger(text: string, bytes: number): boolean {
  return text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes)
}
