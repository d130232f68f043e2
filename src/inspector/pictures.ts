/** Finds the images in the text of a message, which viewers otherwise see as a size and a digest. */
import type { KeptPicture } from './recorder/events.js'

/** Most images of one message. The text of a message is short, and with it the images are. */
const MOST = 8
/** Objects and arrays deeper than this are not searched. */
const DEEPEST = 20
/** The placeholder for bytes in the text that viewers see. A hidden value has another one. */
const SIZE_AND_DIGEST = /^‹\d+ characters, sha256 [\da-f]+›$/
/** Members with bytes. */
const BYTES = ['data', 'blob'] as const

type Json = Readonly<Record<string, unknown>>

/**
 * The images in a complete text. `shown` is the text that viewers see: images are returned only where it has their size, so
 * none of a hidden value.
 */
export function picturesIn(text: string, shown: string): KeptPicture[] {
  const pictures: KeptPicture[] = []
  if (!text.includes('"image/')) return pictures
  try {
    find(JSON.parse(text), JSON.parse(shown), 0, pictures)
  } catch {
    // It is not JSON, or truncated.
  }
  return pictures
}

function find(value: unknown, shown: unknown, depth: number, pictures: KeptPicture[]): void {
  if (!isObject(value) || !isObject(shown) || depth > DEEPEST) return
  const { mimeType } = value
  for (const name of BYTES) {
    const { [name]: data } = value
    const { [name]: seen } = shown
    if (pictures.length >= MOST) return
    if (typeof mimeType === 'string' && mimeType.startsWith('image/') && shown['mimeType'] === mimeType)
      if (typeof data === 'string' && typeof seen === 'string' && SIZE_AND_DIGEST.test(seen))
        pictures.push({ type: mimeType, data })
  }
  for (const [name, inside] of Object.entries(value)) find(inside, shown[name], depth + 1, pictures)
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null
}
