/** The file of `--record`: calls are added as they end. It is replaced as a whole, so that readers never see a part. */
import { lstatSync, readFileSync } from 'node:fs'
import type { Log } from '../base/log/events.js'
import { writePrivateFile } from '../base/net/private-file.js'
import { type EventRecorder, type InspectorParts, loadInspector, type RecordEvent } from './inspector.js'
import { UsageError } from './usage-error.js'

export interface RecordOptions {
  /** Globs of JSON Pointers whose values are hidden, as `inspect.hide`. */
  hide: readonly string[]
  log: Log
}

/** A file that is being written. */
export interface RecordingFile {
  readonly record: RecordEvent
  /** Records the events of a bridge without an inspector. */
  readonly recorder: EventRecorder
  /** Writes what is not written yet. */
  close(): void
}

/** Most calls in a file, and most of their characters. */
const MAX_RECORDED_CALLS = 1_000
const MAX_RECORDED_CHARACTERS = 32 * 1024 * 1024
/** Milliseconds between a call and its writing, and its least multiple of the time that writing takes. */
const PAUSE = 1_000
const PAUSE_FACTOR = 20

/** Begins to write a file. Rejects with a UsageError if that is not possible. */
export async function startRecording(path: string, { hide, log }: RecordOptions): Promise<RecordingFile> {
  const parts = await loadInspector()
  const { EventRecorder, GatheredCalls, recordingText, writeCall } = parts
  const { ignore, calls } = before(path, parts)
  let characters = calls.reduce((sum, { length }) => sum + length, 0)
  let isFull = false
  let timer: NodeJS.Timeout | undefined
  let pause = PAUSE
  const write = () => {
    clearTimeout(timer)
    timer = undefined
    const began = performance.now()
    writePrivateFile(path, Buffer.from(recordingText(ignore, calls)), () => {})
    pause = Math.max(PAUSE, PAUSE_FACTOR * (performance.now() - began))
  }
  const tryToWrite = () => {
    try {
      write()
    } catch (error) {
      log.error({ event: 'recording_failed', path, err: error }, 'calls cannot be written into the recording')
    }
  }
  try {
    write()
  } catch (error) {
    throw new UsageError(`cannot write the recording ${path}: ${(error as Error).message}`)
  }
  log.info({ event: 'recording_started', path, calls: calls.length }, 'recording calls')
  const gathered = new GatheredCalls({
    hide,
    found(call) {
      if (isFull) return
      const text = writeCall(call)
      isFull = calls.length >= MAX_RECORDED_CALLS || characters + text.length > MAX_RECORDED_CHARACTERS
      if (isFull) {
        gathered.stop()
        log.warn({ event: 'recording_full', path, calls: calls.length }, 'the recording is full')
        return
      }
      calls.push(text)
      characters += text.length
      timer ??= setTimeout(tryToWrite, pause).unref()
    },
    left: (why) => log.debug({ event: 'call_not_recorded', why }, 'a call was not recorded'),
  })
  const { record } = gathered
  return {
    record,
    recorder: new EventRecorder(record),
    close() {
      if (timer !== undefined) tryToWrite()
    },
  }
}

/** The calls that are in the file. Throws a UsageError if it is another file. */
function before(
  path: string,
  { MAX_RECORDING, USUALLY_IGNORED, readRecording, writeCall }: InspectorParts,
): { ignore: readonly string[]; calls: string[] } {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return { ignore: USUALLY_IGNORED, calls: [] }
  const problem = (why: string) =>
    new UsageError(`--record needs a new file or a recording, and ${path} ${why}: give another name`)
  if (!found.isFile()) throw problem('is not a regular file')
  if (found.size > MAX_RECORDING) throw problem('is too large for one')
  try {
    const { ignore = [], calls } = readRecording(readFileSync(path, 'utf8'))
    return { ignore, calls: calls.map(writeCall) }
  } catch (error) {
    throw problem(`is none (${(error as Error).message})`)
  }
}
