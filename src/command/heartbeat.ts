/**
 * Shows that the bridge serves: writes the time into a file again and again. The health check of the image (config/healthcheck.sh)
 * reads it, which needs no request, no address and no configuration.
 */
import { closeSync, constants, openSync, rmSync, writeSync } from 'node:fs'
import { uptime } from 'node:os'
import type { Log } from '../base/log/events.js'
import { lookEvery } from '../base/time/time.js'

/** Milliseconds between two writes. The health check waits fifteen times as long. */
const BEAT = 2_000
/** Never through a symbolic link: the folder may be open to other users. */
/** A pipe without a reader would not open: then this fails instead. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
/** Every write has the same length, so that a reader never sees half of one. */
const LENGTH = 20

/** The file of `MCP_BRIDGE_HEALTH_FILE`; nothing is written without it. */
export class Heartbeat {
  readonly #file: string | undefined
  readonly #log: Pick<Log, 'warn'>
  readonly #serves: () => boolean
  #beating: NodeJS.Timeout | undefined
  #isWritten = true

  /** Nothing is written while `serves` says no. */
  constructor(file: string | undefined, log: Pick<Log, 'warn'>, serves: () => boolean = () => true) {
    this.#file = file || undefined
    this.#log = log
    this.#serves = serves
  }

  start(): void {
    const file = this.#file
    if (file === undefined) return
    this.#beating = lookEvery(BEAT, () => this.#beat(file))
    this.#beat(file)
  }

  /** Deletes the file. */
  stop(): void {
    if (!this.#beating || this.#file === undefined) return
    clearInterval(this.#beating)
    this.#beating = undefined
    if (this.#isWritten) rmSync(this.#file, { force: true })
  }

  #beat(file: string): void {
    if (!this.#beating || !this.#serves()) return
    try {
      write(file)
      this.#isWritten = true
    } catch (error) {
      if (this.#isWritten)
        this.#log.warn({ event: 'health_file_failed', file, err: error }, 'cannot write the file for the health check')
      this.#isWritten = false
    }
  }
}

/** Writes the seconds since the machine was started, which no change of its clock affects. */
function write(file: string): void {
  const fd = openSync(file, FLAGS, 0o644)
  try {
    writeSync(fd, `${Math.floor(uptime())}\n`.padStart(LENGTH), 0)
  } finally {
    closeSync(fd)
  }
}
