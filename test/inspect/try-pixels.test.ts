/** The size of an image is read before a browser decodes it, so that a small file cannot take the memory of a large image. */
import t from 'tap'
import { isDrawn, pixelsOf } from '../../src/inspector/page/try/pixels.js'

const bytes = (...parts: (string | number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? [...Buffer.from(part, 'latin1')] : part)))
const HUGE = { width: 65_000, height: 64_000 }
const [W, H] = [
  [0xfd, 0xe8],
  [0xfa, 0x00],
]
const little = (pair: number[]) => pair.toReversed()

const IMAGES: [type: string, name: string, bytes: Uint8Array, pixels: object | undefined][] = [
  ['image/png', 'PNG', bytes('\x89PNG\r\n\x1a\n', [0, 0, 0, 13], 'IHDR', [0, 0], W, [0, 0], H), HUGE],
  ['image/gif', 'GIF', bytes('GIF89a', little(W), little(H), [0, 0, 0, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0]), HUGE],
  [
    'image/gif',
    'GIF whose first frame is larger than its screen',
    bytes(
      'GIF89a',
      [1, 0, 1, 0, 0x80, 0, 0],
      [0, 0, 0, 1, 1, 1],
      [0x21, 0xf9, 4, 0, 0, 0, 0, 0],
      [0x2c, 0, 0, 0, 0],
      little(W),
      little(H),
    ),
    HUGE,
  ],
  ['image/jpeg', 'JPEG', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1, 0xff, 0xff, 0xc2, 0, 11, 8], H, W), HUGE],
  [
    'image/webp',
    'WebP, lossy',
    bytes('RIFF....WEBPVP8 ....', [0, 0, 0, 0x9d, 1, 0x2a], [0xff, 0xff, 0xfe, 0x3f]),
    { width: 16_383, height: 16_382 },
  ],
  [
    'image/webp',
    'WebP, lossless',
    bytes('RIFF....WEBPVP8L....', [0x2f, 0xff, 0xff, 0xff, 0x0f]),
    { width: 16_384, height: 16_384 },
  ],
  ['image/webp', 'WebP, extended', bytes('RIFF....WEBPVP8X....', [0, 0, 0, 0], [0xe7, 0xfd, 0], [0xff, 0xf9, 0]), HUGE],
  ['image/png', 'a GIF that calls itself PNG', bytes('GIF89a', little(W), little(H)), undefined],
  ['image/png', 'nothing', bytes(), undefined],
  ['image/jpeg', 'JPEG without an end', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1, 0xff]), undefined],
  ['image/jpeg', 'segments without a length', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff, 0xe0, 0, 0]), undefined],
  ['image/svg+xml', 'SVG', bytes('<svg width="1" height="1"/>'), undefined],
  ['__proto__', 'no type', bytes('x'), undefined],
]

for (const [type, name, image, pixels] of IMAGES)
  t.test(`the pixels of an image are read: ${name}`, async (t) => t.same(pixelsOf(type, image), pixels))

t.test('only formats whose size can be read are drawn', async (t) => {
  for (const type of ['image/svg+xml', 'image/avif', 'text/html', undefined, 'toString'])
    t.notOk(isDrawn(type), String(type))
  t.ok(isDrawn('image/png'))
})
