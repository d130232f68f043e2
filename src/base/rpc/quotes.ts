/**
 * Finds the quotes that begin and end the strings of a JSON text in bytes: with WebAssembly that compares 64 bytes at a
 * time, because the cost of a search for single bytes grows with the number of escaped quotes.
 */
import { machineCode } from './quotes-code.js'

/** Most bytes of a block. */
export const BLOCK = 16 * 1024
const QUOTE = 0x22
const BACKSLASH = 0x5c
const NONE = new Uint32Array(0)

/** Finds quotes in the first `length` bytes of `input`. */
export interface Finder {
  /** Room for a block. The bytes after the block have to be 0 up to the next multiple of 64. */
  readonly input: Uint8Array
  /** The positions of the quotes found last. */
  readonly output: Uint32Array
  /**
   * `escaped` is 1 if the first byte is escaped, otherwise 0. Returns twice the number of quotes that are not escaped,
   * plus 1 if the first byte after the block is escaped.
   */
  find(length: number, escaped: number): number
}

/** Reads one text, block by block. */
export class Quotes {
  readonly #finder: Finder
  #escaped = 0

  constructor(finder: Finder = usual()) {
    this.#finder = finder
  }

  /** The positions of all quotes in the next block that are not escaped. Valid until the next call for any text. */
  next(block: Uint8Array): Uint32Array {
    // Base64 and other long strings without escapes: one search, and no copy.
    if (!block.includes(QUOTE)) return this.#skip(block)
    const { input, output } = this.#finder
    input.set(block)
    input.fill(0, block.length, (block.length + 63) & ~63)
    const found = this.#finder.find(block.length, this.#escaped)
    this.#escaped = found & 1
    return output.subarray(0, found >>> 1)
  }

  /** Skips a block without quotes. What follows is escaped after an odd number of backslashes. */
  #skip(block: Uint8Array): Uint32Array {
    let start = block.length
    while (start > 0 && block[start - 1] === BACKSLASH) start--
    this.#escaped = (block.length - start + (start === 0 ? this.#escaped : 0)) & 1
    return NONE
  }
}

/** The used part of WebAssembly, which the types of Node.js 20 lack. */
interface WebAssembly {
  Module: new (code: Uint8Array) => object
  Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; find: Finder['find'] } }
}

/** The Finder in WebAssembly; undefined if this machine cannot run it. */
export function fastFinder(): Finder | undefined {
  try {
    const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssembly }).WebAssembly
    const { memory, find } = new Instance(new Module(machineCode(BLOCK))).exports
    const { buffer } = memory
    return { input: new Uint8Array(buffer, 0, BLOCK), output: new Uint32Array(buffer, BLOCK, BLOCK), find }
  } catch {
    return undefined
  }
}

/** The same in plain JavaScript. */
export function plainFinder(): Finder {
  const input = new Uint8Array(BLOCK)
  const output = new Uint32Array(BLOCK)
  const find = (length: number, escaped: number) => {
    let found = 0
    let at = escaped
    for (; at < length; at++) {
      if (input[at] === QUOTE) output[found++] = at
      else if (input[at] === BACKSLASH) at++
    }
    return 2 * found + (at - length)
  }
  return { input, output, find }
}

/** One Finder serves all texts, because a text is read without a pause. */
function usual(): Finder {
  shared ??= fastFinder() ?? plainFinder()
  return shared
}
let shared: Finder | undefined
