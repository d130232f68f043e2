/** Reads the events of a file: an export of the page as JSONL, or what `mcp-bridge tail --json` has printed. */
import { eventIn } from '../event.js'
import { Merged, MergedSource } from './merged.js'

/** Largest file, and longest line, in bytes. */
export const MAX_PAST_FILE = 100 * 1024 * 1024
const MAX_RECORDED_LINE = 1024 * 1024
const NEWLINE = 0x0a

/** The events of a file, and how many lines have none. */
export interface PastSession {
  merged: Merged
  events: number
  broken: number
  /** The number of the first line without an event, from 1. */
  firstBroken: number | undefined
}

/** A line with an event. A file may have the events of several runs of a bridge, which begin to count again. */
interface Line {
  run: number
  seq: number
  start: number
  end: number
}

/** Reads the events. Lines without one are counted, and left out. */
export function pastSessionIn(bytes: Buffer): PastSession {
  const lines: Line[] = []
  let [broken, run, lastSeq, lastAt, number] = [0, 0, 0, 0, 0]
  let firstBroken: number | undefined
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(NEWLINE, start)
    const end = found < 0 ? bytes.length : found
    const seen = end - start > MAX_RECORDED_LINE ? undefined : eventIn(bytes.toString('utf8', start, end))
    number++
    if (seen) {
      // `tail --json` prints a call that matches late after later calls: its events are older.
      if (seen.seq <= lastSeq && seen.at > lastAt) [run, lastSeq] = [run + 1, 0]
      lastSeq = Math.max(lastSeq, seen.seq)
      lastAt = Math.max(lastAt, seen.at)
      lines.push({ run, seq: seen.seq, start, end })
    } else if (bytes.toString('utf8', start, Math.min(end, start + 100)).trim() !== '') {
      firstBroken ??= number
      broken++
    }
    start = end + 1
  }
  lines.sort((a, b) => a.run - b.run || a.seq - b.seq)
  // Running calls are shown as they were at the last event.
  const merged: Merged = new Merged(() => lastAt - performance.timeOrigin)
  let source: MergedSource | undefined
  let of = -1
  for (const { run, start, end } of lines) {
    if (run !== of) source = new MergedSource(merged, undefined)
    of = run
    const seen = eventIn(bytes.toString('utf8', start, end))
    if (seen) source?.add(seen)
  }
  return { merged, events: lines.length, broken, firstBroken }
}
