/**
 * The WebAssembly module that finds quotes (see `Finder` in quotes.ts), instruction by instruction. It makes a mask of
 * 64 bits for 64 bytes, with a bit for each quote, and removes escaped ones with the arithmetic of simdjson (Langdale
 * and Lemire, "Parsing gigabytes of JSON per second", 3.1.1).
 */

type Code = readonly number[]

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** The bits at even and at odd places. */
const EVEN = 0x5555555555555555n
const ODD = ~EVEN

/** A number in LEB128: 7 bits per byte, the lowest first. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

function signed(value: bigint): Code {
  const low = Number(value & 0x7fn)
  const rest = value >> 7n
  const complete = rest === (low & 0x40 ? -1n : 0n)
  return complete ? [low] : [low | 0x80, ...signed(rest)]
}

const I32 = 0x7f
const I64 = 0x7e
const i32 = {
  isZero: [0x45],
  const: (value: number): Code => [0x41, ...signed(BigInt(value))],
  store: [0x36, 2, 0],
  atLeast: [0x4f],
  plus: [0x6a],
  minus: [0x6b],
  and: [0x71],
  or: [0x72],
  shiftRight: [0x76],
  fromI64: [0xa7],
} as const
const i64 = {
  const: (value: bigint): Code => [0x42, ...signed(value)],
  isZero: [0x50],
  less: [0x54],
  trailingZeros: [0x7a],
  plus: [0x7c],
  minus: [0x7d],
  and: [0x83],
  or: [0x84],
  xor: [0x85],
  shiftLeft: [0x86],
  shiftRight: [0x88],
  fromI32: [0xad],
} as const
const not = [...i64.const(-1n), ...i64.xor]
const v128 = {
  load: (offset: number): Code => [0xfd, 0, 0, ...unsigned(offset)],
  splat: [0xfd, 15],
  equal: [0xfd, 35],
  /** One bit for each of 16 bytes. */
  bitmask: [0xfd, 100],
} as const

const BLOCK = [0x02, 0x40]
const LOOP = [0x03, 0x40]
const IF = [0x04, 0x40]
const END = [0x0b]
const branch = (levels: number): Code => [0x0c, levels]
const branchIf = (levels: number): Code => [0x0d, levels]

/** The parameters, then the local variables: positions, and masks of 64 bytes. */
const VARIABLES = ['length', 'first', 'at', 'out', 'quotes', 'slashes', 'after', 'sums', 'escaped', 'carry'] as const
type Variable = (typeof VARIABLES)[number]
const get = (name: Variable): Code => [0x20, VARIABLES.indexOf(name)]
const set = (name: Variable): Code => [0x21, VARIABLES.indexOf(name)]
const tee = (name: Variable): Code => [0x22, VARIABLES.indexOf(name)]

/** The bits of the 64 bytes from `at` on that are this character. */
function mask(character: number): Code {
  return [0, 16, 32, 48].flatMap((offset) => [
    ...[...get('at'), ...v128.load(offset), ...i32.const(character), ...v128.splat, ...v128.equal, ...v128.bitmask],
    ...[...i64.fromI32, ...i64.const(BigInt(offset)), ...i64.shiftLeft, ...(offset > 0 ? i64.or : [])],
  ])
}

/** The bits of escaped bytes. `carry` says whether the first byte is one, and then whether the byte after the last is. */
const findEscaped: Code = [
  // A backslash that is escaped itself escapes nothing.
  ...[...get('slashes'), ...get('carry'), ...not, ...i64.and, ...tee('slashes')],
  ...[...i64.const(1n), ...i64.shiftLeft, ...get('carry'), ...i64.or, ...set('after')],
  // Adding the odd places at which runs of backslashes begin carries through the run, to the place after it.
  ...[...get('slashes'), ...i64.const(ODD), ...i64.and, ...get('after'), ...not, ...i64.and],
  ...[...get('slashes'), ...i64.plus, ...tee('sums'), ...get('slashes'), ...i64.less, ...i64.fromI32, ...set('carry')],
  ...[...get('sums'), ...i64.const(1n), ...i64.shiftLeft, ...i64.const(EVEN), ...i64.xor],
  ...[...get('after'), ...i64.and, ...set('escaped')],
]

/** Writes the position of each bit of `quotes` to the output. */
const writePositions: Code = [
  ...[...BLOCK, ...LOOP, ...get('quotes'), ...i64.isZero, ...branchIf(1)],
  ...[...get('out'), ...get('quotes'), ...i64.trailingZeros, ...i32.fromI64, ...get('at'), ...i32.plus, ...i32.store],
  ...[...get('out'), ...i32.const(4), ...i32.plus, ...set('out')],
  ...[...get('quotes'), ...get('quotes'), ...i64.const(1n), ...i64.minus, ...i64.and, ...set('quotes')],
  ...[...branch(0), ...END, ...END],
]

/** `find`. The input is at 0, the output at `size`. */
function body(size: number): Code {
  const sizeOfLast = [...get('length'), ...i32.const(63), ...i32.and]
  return [
    ...[...get('first'), ...i64.fromI32, ...set('carry'), ...i32.const(size), ...set('out')],
    ...[...BLOCK, ...LOOP, ...get('at'), ...get('length'), ...i32.atLeast, ...branchIf(1)],
    ...[...mask(QUOTE), ...set('quotes'), ...mask(BACKSLASH), ...set('slashes'), ...i64.const(0n), ...set('escaped')],
    ...[...get('slashes'), ...get('carry'), ...i64.or, ...i64.isZero, ...i32.isZero, ...IF, ...findEscaped],
    ...[...get('escaped'), ...not, ...get('quotes'), ...i64.and, ...set('quotes'), ...END],
    ...writePositions,
    ...[...get('at'), ...i32.const(64), ...i32.plus, ...set('at'), ...branch(0), ...END, ...END],
    // If the last 64 bytes are not complete, the byte after them has a bit of its own.
    ...[...sizeOfLast, ...IF, ...get('escaped'), ...sizeOfLast, ...i64.fromI32, ...i64.shiftRight],
    ...[...i64.const(1n), ...i64.and, ...set('carry'), ...END],
    ...[...get('out'), ...i32.const(size), ...i32.minus, ...i32.const(1), ...i32.shiftRight],
    ...[...get('carry'), ...i32.fromI64, ...i32.or, ...END],
  ]
}

/** The module, for blocks of up to `size` bytes. It exports `memory` and `find`. */
export function machineCode(size: number): Uint8Array<ArrayBuffer> {
  const locals = [2, 2, I32, 6, I64]
  const pages = Math.ceil((5 * size) / 65_536)
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [[0x60, 2, I32, I32, 1, I32]]),
    ...section(3, [[0]]),
    ...section(5, [[0, pages]]),
    ...section(7, [
      [...sized(Array.from('memory', code)), 2, 0],
      [...sized(Array.from('find', code)), 0, 0],
    ]),
    ...section(10, [sized([...locals, ...body(size)])]),
  ])
}

const code = (character: string) => character.charCodeAt(0)

function sized(bytes: Code): Code {
  return [...unsigned(bytes.length), ...bytes]
}

function section(id: number, items: readonly Code[]): Code {
  return [id, ...sized([...unsigned(items.length), ...items.flat()])]
}
