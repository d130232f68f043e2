/** The interval at which the inspector polls the state of a task. */
import { pause } from '../../base/time/pause.js'

/** Milliseconds between two requests, and the most and least that a server can ask for. */
const USUAL = 1_000
const MOST = 30_000
const LEAST = 100

/** Waits for the interval that a server has asked for. Rejects when the signal aborts. */
export async function untilNextPoll(interval: unknown, signal: AbortSignal): Promise<void> {
  await pause(Math.min(Math.max(typeof interval === 'number' ? interval : USUAL, LEAST), MOST), signal)
  signal.throwIfAborted()
}
