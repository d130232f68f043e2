/** Writes a ZIP archive (APPNOTE 6.3.10): deflated files, without encryption, comments or the fields of large archives. */
import { crc32, deflateRawSync } from 'node:zlib'

const VERSION = 20
/** UNIX, so that the mode of a file is that of its row. */
const MADE_BY = (3 << 8) | VERSION
const UTF8_NAMES = 1 << 11
const DEFLATED = 8
const REGULAR = 0o100_644
/** 1980-01-01: equal files make equal archives. */
const DATE = (1 << 5) | 1

/** The bytes of an archive of these files, by their paths with forward slashes. */
export function zip(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const parts: Buffer[] = []
  const rows: Buffer[] = []
  let at = 0
  for (const [path, content] of files) {
    const name = Buffer.from(path)
    const packed = deflateRawSync(content, { level: 9 })
    // What a file begins with, and its row in the directory at the end have in common.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(VERSION, 0)
    common.writeUInt16LE(UTF8_NAMES, 2)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt16LE(DATE, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(name.length, 22)
    const file = [Buffer.from('PK\x03\x04'), common, name, packed]
    const row = Buffer.alloc(14)
    row.writeUInt32LE(REGULAR * 0x1_00_00, 6)
    row.writeUInt32LE(at, 10)
    rows.push(Buffer.from('PK\x01\x02'), numbers(MADE_BY), common, row, name)
    parts.push(...file)
    at += file.reduce((bytes, { length }) => bytes + length, 0)
  }
  const directory = Buffer.concat(rows)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.size, 4)
  end.writeUInt16LE(files.size, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...parts, directory, Buffer.from('PK\x05\x06'), end])
}

function numbers(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
