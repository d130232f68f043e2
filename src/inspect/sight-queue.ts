/**
 * Sights that wait to be recorded. To record many of them in a row takes a fraction of the time that it takes to record
 * each when it is told, because code and memory stay in the caches of the processor.
 */
import type { Sight } from '../ports/seen.js'
import type { Wire } from '../rpc/source.js'

/** Most sights that wait, and most bytes of their messages. */
const MOST = 64
const MOST_BYTES = 128 * 1024
/** Milliseconds for which a sight waits at most. */
const LONGEST = 50

/** Records a sight that was told at this time. */
type Recorder = (sight: Sight, text: Wire | undefined, at: number) => void

export class SightQueue {
  readonly #record: Recorder
  /** New arrays each time: the garbage collector keeps account of what is written into old ones. */
  #sights = new Array<Sight>(MOST)
  #texts = new Array<Wire | undefined>(MOST)
  readonly #times = new Float64Array(MOST)
  #length = 0
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  readonly #late = () => {
    this.#timer = undefined
    this.recordAll()
  }

  constructor(record: Recorder) {
    this.#record = record
  }

  get length(): number {
    return this.#length
  }

  /** Adds a sight, and records all of them if there are many. */
  add(sight: Sight, text: Wire | undefined, at: number): void {
    const place = this.#length++
    this.#sights[place] = sight
    this.#texts[place] = text
    this.#times[place] = at
    if (sight.kind === 'message') this.#bytes += sight.bytes
    if (this.#length === MOST || this.#bytes > MOST_BYTES) this.recordAll()
    else this.#timer ??= setTimeout(this.#late, LONGEST).unref()
  }

  /** Records what waits, in the order in which it was told. */
  recordAll(): void {
    const length = this.#length
    if (length === 0) return
    const sights = this.#sights
    const texts = this.#texts
    this.#sights = new Array<Sight>(MOST)
    this.#texts = new Array<Wire | undefined>(MOST)
    this.#length = 0
    this.#bytes = 0
    for (let place = 0; place < length; place++)
      this.#record(sights[place] as Sight, texts[place], this.#times[place] as number)
  }
}
