/** The width and height of an image, read from its first bytes before a browser decodes it. Pure. */

export interface Pixels {
  width: number
  height: number
}

/** Readers of the formats that are drawn. Each reads what decoders take the memory of the whole image for. */
const READERS: Readonly<Record<string, (bytes: DataView) => Pixels | undefined>> = {
  'image/png': pngPixels,
  'image/jpeg': jpegPixels,
  'image/gif': gifPixels,
  'image/webp': webpPixels,
}

/** Whether images of this type are drawn. */
export function isDrawn(type: unknown): type is string {
  return typeof type === 'string' && Object.hasOwn(READERS, type)
}

/** Undefined for other types, and if the bytes are no image of the type. */
export function pixelsOf(type: string, bytes: Uint8Array): Pixels | undefined {
  if (!isDrawn(type)) return undefined
  try {
    return READERS[type]?.(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  } catch {
    // It ends before its size.
    return undefined
  }
}

function textAt(bytes: DataView, start: number, length: number): string {
  return String.fromCharCode(...new Uint8Array(bytes.buffer, bytes.byteOffset + start, length))
}

function pngPixels(bytes: DataView): Pixels | undefined {
  if (textAt(bytes, 1, 3) !== 'PNG' || textAt(bytes, 12, 4) !== 'IHDR') return undefined
  return { width: bytes.getUint32(16), height: bytes.getUint32(20) }
}

function jpegPixels(bytes: DataView): Pixels | undefined {
  if (bytes.getUint16(0) !== 0xffd8) return undefined
  for (let at = 2; bytes.getUint8(at) === 0xff; ) {
    const marker = bytes.getUint8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { width: bytes.getUint16(at + 7), height: bytes.getUint16(at + 5) }
    at += marker === 0xff ? 1 : 2 + bytes.getUint16(at + 2)
  }
  return undefined
}

/** Some decoders make the image as large as its first frame. */
function gifPixels(bytes: DataView): Pixels | undefined {
  if (textAt(bytes, 0, 3) !== 'GIF') return undefined
  const sizeOfTable = (flags: number) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)
  let at = 13 + sizeOfTable(bytes.getUint8(10))
  while (bytes.getUint8(at) === 0x21) {
    at += 2
    while (bytes.getUint8(at) !== 0) at += 1 + bytes.getUint8(at)
    at++
  }
  if (bytes.getUint8(at) !== 0x2c) return undefined
  const end = (place: number, length: number) => bytes.getUint16(place, true) + bytes.getUint16(length, true)
  return {
    width: Math.max(bytes.getUint16(6, true), end(at + 1, at + 5)),
    height: Math.max(bytes.getUint16(8, true), end(at + 3, at + 7)),
  }
}

function webpPixels(bytes: DataView): Pixels | undefined {
  if (textAt(bytes, 0, 4) !== 'RIFF' || textAt(bytes, 8, 4) !== 'WEBP') return undefined
  switch (textAt(bytes, 12, 4)) {
    case 'VP8 ':
      return { width: bytes.getUint16(26, true) & 0x3fff, height: bytes.getUint16(28, true) & 0x3fff }
    case 'VP8L': {
      const packed = bytes.getUint32(21, true)
      return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X': {
      const three = (at: number) => bytes.getUint16(at, true) + (bytes.getUint8(at + 2) << 16) + 1
      return { width: three(24), height: three(27) }
    }
    default:
      return undefined
  }
}
