/** The source of the page's events: the running bridge, or a file dropped on the page. */

import { whole } from '../../base/rpc/source.js'
import { SseDecoder } from '../../base/rpc/sse.js'
import { eventIn } from '../event.js'
import type { KeptText, RecordedEvent } from '../recorder/events.js'
import { chunksOf } from '../try/http.js'
import type { CallView, ProcessNow, ServerNow, ServerView } from '../views.js'
import { add, beginAt, now as clockNow, forget, kept, processNow, serversNow, setClock, source } from './state.js'

/** Shortest and longest delay before reconnecting, in milliseconds. */
const FIRST = 500
const LONGEST = 10_000
/** Delay in milliseconds before checking again after an end. */
const AFTER = 500
/** Events of a file that are parsed or added at a time. */
const SLICE = 1_000
/** Largest file, in bytes. */
const MAX_FILE = 64 * 1024 * 1024

let token: string | undefined
let stream: AbortController | undefined
/** The bridge that the events are from, and the last event. */
let bridge: string | undefined
let last = 0

const whenLive: (() => void)[] = []

/** Calls back each time the page connects to the bridge. */
export function onLive(told: () => void): void {
  whenLive.push(told)
}

/** Reads events until a file is opened. Reconnects when the connection breaks. */
export async function follow(given: string | undefined): Promise<void> {
  token = given
  if (token === undefined) {
    source.value = { kind: 'no token' }
    return
  }
  const own = new AbortController()
  stream = own
  let wait = FIRST
  while (!own.signal.aborted) {
    try {
      const end = await read(own.signal, () => {
        wait = FIRST
      })
      if (end === 'refused') return
      if (!own.signal.aborted) source.value = { kind: 'waiting', why: end }
    } catch {
      if (!own.signal.aborted) source.value = { kind: 'waiting', why: 'the bridge is unreachable' }
    }
    await new Promise((resolve) => setTimeout(resolve, wait))
    wait = Math.min(LONGEST, wait * 2)
  }
}

/** The first message of a bridge: its identity and its clock. */
interface Hello {
  bridge: string
  at: number
  /** The bridge has all events from this number on. */
  first: number
  /** When its memory was cleared. */
  cleared?: number
  /** The file that its events are from. */
  file?: string
}

/** Reads one stream. Resolves to the reason of its end. */
async function read(signal: AbortSignal, onReached: () => void): Promise<string> {
  const response = await fromBridge(`events?after=${last}`, { signal })
  if (response.status === 401) {
    source.value = { kind: 'refused', why: 'unknown token' }
    return 'refused'
  }
  if (!response.ok || !response.body) return `the bridge answered ${response.status}`
  const decoder = new SseDecoder()
  for await (const chunk of chunksOf(response.body)) {
    const events: RecordedEvent[] = []
    for (const { event, data: pieces } of decoder.push(chunk)) {
      const data = utf8.decode(whole(pieces))
      if (event === 'message') events.push(JSON.parse(data) as RecordedEvent)
      else if (event === 'dropped') return 'this page read too slowly'
      else if (event === 'hello') {
        const hello = JSON.parse(data) as Hello
        if (isOther(hello)) return 'the bridge restarted'
        setClock(hello.at)
        if (last === 0) beginAt(hello)
        onReached()
        if (hello.file !== undefined) {
          source.value = { kind: 'file', name: hello.file, isServed: true }
          continue
        }
        source.value = { kind: 'live' }
        lookAtPayloads().catch(() => {})
        for (const told of whenLive) told()
      }
    }
    last = events.at(-1)?.seq ?? last
    if (events.length > 0) add(events)
  }
  return 'the connection was closed'
}

const utf8 = new TextDecoder()

/** Whether the events are from another bridge than before. Then they are read from the start. */
function isOther({ bridge: now }: Hello): boolean {
  const isOther = bridge !== undefined && bridge !== now
  bridge = now
  if (!isOther) return false
  last = 0
  forget()
  return true
}

/** Whether the bridge may have texts of messages. */
export function mayHaveTexts(): boolean {
  const { payloads = 'off', hasTexts = false } = kept.value ?? {}
  return payloads !== 'off' || hasTexts
}

/** The stored texts of a call, by the numbers of their events. A file has them in its events. */
export async function textsOf(id: string): Promise<ReadonlyMap<number, KeptText>> {
  const texts = new Map<number, KeptText>()
  if (source.peek().kind !== 'live' || !mayHaveTexts()) return texts
  const { events = [] } = (await readFromBridge<CallView>(`calls/${encodeURIComponent(id)}`)) ?? {}
  for (const seen of events) if (seen.kind === 'message' && seen.payload) texts.set(seen.seq, seen.payload)
  return texts
}

/** Reads the state of the servers from the bridge. */
export async function lookAtServers(): Promise<void> {
  if (source.value.kind !== 'live') return
  const answer = await readFromBridge<{ servers: (ServerNow | ServerView)[]; bridge?: ProcessNow }>('servers')
  if (!answer) return
  serversNow.value = answer.servers
  processNow.value = answer.bridge
}

/** Reads which payloads the bridge stores, after changing that if `keep` is given. */
export async function lookAtPayloads(keep?: 'all' | 'configured'): Promise<void> {
  const response =
    keep === undefined ? await fromBridge('payloads') : await fromBridge(`payloads?keep=${keep}`, { method: 'POST' })
  if (!response.ok) return
  const now = (await response.json()) as NonNullable<typeof kept.value>
  kept.value = now
  const { until } = now
  if (until !== undefined)
    setTimeout(
      () => {
        if (kept.value === now) lookAtPayloads().catch(() => {})
      },
      Math.max(0, until - clockNow()) + AFTER,
    )
}

/** The stored events of matching calls; undefined if the bridge is unreachable. */
export function exported(format: 'jsonl' | 'har', filter: string): Promise<Response | undefined> {
  return fromBridge(`export?${new URLSearchParams({ format, filter })}`).catch(() => undefined)
}

/** Asks the bridge for something of the inspector, with the token. */
export function fromBridge(path: string, { headers, ...more }: RequestInit = {}): Promise<Response> {
  const authorization = `Bearer ${token ?? ''}`
  return fetch(new URL(`inspect/${path}`, location.href), { ...more, headers: { ...headers, authorization } })
}

/** The answer of the bridge to such a request; undefined if there is none. */
export async function readFromBridge<T>(path: string): Promise<T | undefined> {
  const response = await fromBridge(path).catch(() => undefined)
  return response?.ok ? ((await response.json()) as T) : undefined
}

/** Whether there is a bridge to follow. */
export function hasBridge(): boolean {
  return token !== undefined
}

/** Shows the events of the bridge from the start, in place of those of a file or before `Clear`. */
export function followAnew(given = token): void {
  stream?.abort()
  forget()
  last = 0
  source.value = { kind: 'connecting' }
  follow(given).catch(() => {})
}

/** Shows the events of an exported file instead of those of the bridge. Resolves to an error message, if there is one. */
export async function open(file: File): Promise<string | undefined> {
  if (file.size > MAX_FILE) return `${file.name} is larger than ${MAX_FILE / 1024 / 1024} MiB`
  const events: RecordedEvent[] = []
  for (const [i, line] of (await file.text()).split('\n').entries()) {
    if (i % SLICE === SLICE - 1) await nextTask()
    if (line.trim() === '') continue
    const seen = eventIn(line)
    if (!seen) return `Line ${i + 1} of ${file.name} is not an event of mcp-bridge: open an export as JSONL`
    events.push(seen)
  }
  if (events.length === 0) return `${file.name} has no events`
  // `tail --json` prints a call that matches late after later calls.
  events.sort((a, b) => a.seq - b.seq)
  stream?.abort()
  forget()
  const own = { kind: 'file', name: file.name } as const
  source.value = own
  // Returning to the bridge, or opening another file, stops it.
  for (let i = 0; i < events.length && source.value === own; i += SLICE) {
    add(events.slice(i, i + SLICE))
    await nextTask()
  }
  return undefined
}

/** Yields, so that the page can react to keys. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}
