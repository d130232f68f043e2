/** What the browser's own tracing says about a page: its frames, the tasks of its main thread, and its answers to keys. */
import type { Chromium } from '../support/chromium.js'

/** Times in milliseconds. */
export interface Traced {
  /** From the beginning of a frame to its being on the screen, for frames with something new. */
  frames: number[]
  /** Frames that should have had something new, and were not drawn in time. */
  dropped: number
  /** Tasks of the main thread that took at least a millisecond. */
  tasks: number[]
  /** The CPU time of the same tasks, which other programs on the machine do not lengthen. */
  tasksCpu: number[]
  /** From a key to the next frame on the screen. */
  keys: number[]
  /** Whether the browser had more to tell than its buffer holds. */
  isComplete: boolean
}

interface TraceEvent {
  name: string
  ph: string
  pid: number
  tid: number
  /** Microseconds. */
  ts: number
  dur?: number
  tdur?: number
  id?: string
  id2?: { local?: string }
  args: { name?: string; data?: { type?: string }; frame_reporter?: { state?: string } }
}

const CATEGORIES = [
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'disabled-by-default-devtools.timeline.frame',
]
/** Tasks shorter than this, in milliseconds, are not listed. */
const SHORT = 1

/** Begins to trace. The returned function ends that, and says what was seen. */
export async function trace(browser: Chromium): Promise<() => Promise<Traced>> {
  const events: TraceEvent[] = []
  let isComplete = true
  let onEnd = () => {}
  const ended = new Promise<void>((resolve) => {
    onEnd = resolve
  })
  browser.on('Tracing.dataCollected', ({ value }) => events.push(...(value as TraceEvent[])))
  browser.on('Tracing.tracingComplete', ({ dataLossOccurred }) => {
    isComplete = !dataLossOccurred
    onEnd()
  })
  const traceConfig = { recordMode: 'recordUntilFull', includedCategories: CATEGORIES, excludedCategories: ['*'] }
  await browser.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig })
  return async () => {
    await browser.send('Tracing.end')
    await ended
    return { ...read(events), isComplete }
  }
}

function read(events: readonly TraceEvent[]): Omit<Traced, 'isComplete'> {
  const mains = events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
  const tasksOf = ({ pid, tid }: TraceEvent) =>
    events.filter((event) => event.name === 'RunTask' && event.ph === 'X' && event.pid === pid && event.tid === tid)
  // There is another renderer, with the empty page that the browser began with.
  const [main] = mains.toSorted((a, b) => tasksOf(b).length - tasksOf(a).length)
  if (!main) return { frames: [], dropped: 0, tasks: [], tasksCpu: [], keys: [] }
  const ours = events.filter(({ pid }) => pid === main.pid)
  const tasks = tasksOf(main).filter(({ dur = 0 }) => dur >= SHORT * 1_000)
  const frames = spans(ours, 'PipelineReporter')
  const stateOf = ({ args }: TraceEvent) => args.frame_reporter?.state ?? ''
  const isKey = ({ args }: TraceEvent) => args.data?.type === 'keydown'
  return {
    frames: frames.filter(({ begin }) => stateOf(begin).startsWith('STATE_PRESENTED')).map(({ ms }) => ms),
    dropped: frames.filter(({ begin }) => stateOf(begin) === 'STATE_DROPPED').length,
    tasks: tasks.map(({ dur = 0 }) => dur / 1_000),
    tasksCpu: tasks.map(({ tdur = 0 }) => tdur / 1_000),
    keys: spans(ours, 'EventTiming')
      .filter(({ begin }) => isKey(begin))
      .map(({ ms }) => ms),
  }
}

/** What begins and ends with events of their own. */
function spans(events: readonly TraceEvent[], name: string): { begin: TraceEvent; ms: number }[] {
  const open = new Map<string | undefined, TraceEvent>()
  return events
    .filter((event) => event.name === name)
    .toSorted((a, b) => a.ts - b.ts)
    .flatMap((event) => {
      const id = event.id ?? event.id2?.local
      const begin = open.get(id)
      open.delete(id)
      if (event.ph === 'b') open.set(id, event)
      return begin && event.ph === 'e' ? [{ begin, ms: (event.ts - begin.ts) / 1_000 }] : []
    })
}
