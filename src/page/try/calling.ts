/** The state and the actions of the view Try: the client, the items that a server lists in both eras, open questions, and calls. */
import { signal } from '@preact/signals'
import { completionsOf, connectTry, listOf } from '../../inspect/try/client.js'
import type { JsonRecord, TryCallOptions, TryClient, TryEvent, TryQuestion } from '../../inspect/try/types.js'
import type { Expected, RecordedAnswer } from '../../replay/recording.js'
import { fromBridge } from '../feed.js'
import { expanded } from './uri-template.js'

export const KINDS = ['tools', 'prompts', 'resources', 'templates'] as const
type Kind = (typeof KINDS)[number]

/** The revisions that the page speaks as a client, the newest first. */
export const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/** A listed tool, prompt, resource or template. */
export interface Item {
  kind: Kind
  name: string
  /** As the chosen client sees it; undefined if only clients of the other era do. */
  here: JsonRecord | undefined
  /** As a client of the other era sees it. */
  there: JsonRecord | undefined
}

/** A question without an answer so far. */
export interface OpenQuestion extends TryQuestion {
  id: number
  /** The recorded answer, if the call is repeated. */
  recorded?: JsonRecord | undefined
  answer(result: JsonRecord): void
}

/** The bridge's answer about items that clients do not see. */
interface HiddenItems {
  hidden: readonly { kind: string; name: string; server: string; why: string }[]
  problem?: string
}

/** A call of the page. */
export interface PageCall {
  id: number
  name: string
  method: string
  params: JsonRecord
  /** The schema of its structured content, if it has one. */
  outputSchema?: unknown
  revision: string
  began: number
  ms?: number
  events: readonly TryEvent[]
  result?: JsonRecord
  error?: { message: string; code?: number | undefined; data?: unknown }
  cancel?: () => void
  /** The recorded answer, if the call is repeated. */
  expect?: Expected | undefined
  /** The unused recorded answers to questions, if the call is repeated. */
  answers?: readonly RecordedAnswer[] | undefined
}

/** Whether the bridge allows calls, and the targets. */
export const allowed = signal<{ allowed: boolean; why?: string }>({ allowed: false })
export const targets = signal<readonly { name: string; kind: string }[]>([])
export const target = signal<string | undefined>(undefined)
export const revision = signal<string>(REVISIONS[0])
/** The state of the connection in words; undefined when it is ready. */
export const connecting = signal<string | undefined>(undefined)
export const server = signal<TryClient['server'] | undefined>(undefined)
export const items = signal<readonly Item[]>([])
/** The items of the target that clients do not see, with reasons. */
export const hiddenItems = signal<HiddenItems>({ hidden: [] })
export const chosenItem = signal<Item | undefined>(undefined)
/** The answer to `roots/list`: one URI per line. */
export const roots = signal('')
export const waitingQuestions = signal<readonly OpenQuestion[]>([])
export const pageCalls = signal<readonly PageCall[]>([])

/** Most calls of the page that are kept, and events of one. */
const MAX_PAGE_CALLS = 50
const MAX_CALL_EVENTS = 500

let client: TryClient | undefined
let attempt = 0
let lastId = 0

/** Reads the targets of calls. */
export async function lookAtTargets(): Promise<void> {
  const response = await fromBridge('servers').catch(() => undefined)
  if (!response?.ok) return
  const body = (await response.json()) as { try?: typeof allowed.value; targets?: typeof targets.value }
  allowed.value = body.try ?? { allowed: false, why: 'This bridge does not allow calls from the page.' }
  targets.value = body.targets ?? []
  const [first] = targets.value
  if (allowed.value.allowed && target.value === undefined && first) await connect(first.name, revision.value)
}

/** Connects to a server or group, and lists its items as both eras see them. */
export async function connect(name: string, as: string): Promise<void> {
  const own = ++attempt
  const before = client
  client = undefined
  numbers.clear()
  target.value = name
  revision.value = as
  items.value = []
  hiddenItems.value = { hidden: [] }
  chosenItem.value = undefined
  server.value = undefined
  connecting.value = 'Connecting …'
  before?.close().catch(() => {})
  try {
    const connected = await open(name, as)
    if (own !== attempt) return void connected.close().catch(() => {})
    client = connected
    server.value = connected.server
    connected.listen().catch(() => {})
    connecting.value = 'Listing …'
    const here = await listAll(connected)
    const there = await listAsOther(name, connected)
    if (own !== attempt) return
    items.value = joined(here, there)
    connecting.value = undefined
    const hidden = await hiddenOf(name)
    if (own === attempt) hiddenItems.value = hidden
  } catch (error) {
    if (own === attempt) connecting.value = `Not connected: ${(error as Error).message}`
  }
}

/** Calls the chosen item. */
export async function callItem({ kind, name, here, there }: Item, args: JsonRecord, task: boolean): Promise<void> {
  const listed = here ?? there ?? {}
  if (kind === 'tools') return makeCall(name, 'tools/call', { name, arguments: args }, { task, tool: listed })
  if (kind === 'prompts') return makeCall(name, 'prompts/get', { name, arguments: args })
  if (kind === 'resources') return makeCall(name, 'resources/read', { uri: listed['uri'] })
  return makeCall(name, 'resources/read', { uri: expanded(String(listed['uriTemplate']), args) })
}

/** Whether the server completes arguments of such items. */
export function isCompleted({ kind }: Item): boolean {
  return (kind === 'prompts' || kind === 'templates') && 'completions' in (server.value?.capabilities ?? {})
}

/** Completions of an argument of a prompt, or of a variable of a template. */
export async function complete(
  { kind, name }: Item,
  argument: { name: string; value: string },
  others: Record<string, string>,
  signal: AbortSignal,
): Promise<string[]> {
  if (!client) return []
  const ref = kind === 'prompts' ? { type: 'ref/prompt', name } : { type: 'ref/resource', uri: name }
  const context = Object.keys(others).length > 0 ? { context: { arguments: others } } : {}
  return completionsOf(client, { ref, argument, ...context }, signal)
}

/** Makes a call, and keeps its outcome. */
export async function makeCall(
  name: string,
  method: string,
  params: JsonRecord,
  { expect, answers, ...options }: Pick<TryCallOptions, 'task' | 'tool'> & Pick<PageCall, 'expect' | 'answers'> = {},
): Promise<void> {
  const { value: as } = revision
  const controller = new AbortController()
  const id = ++lastId
  const outputSchema = options.tool?.['outputSchema']
  const began = performance.now()
  const one: PageCall = { id, name, method, params, outputSchema, revision: as, began, events: [], expect, answers }
  pageCalls.value = [
    { ...one, cancel: () => controller.abort(new Error('You cancelled the call')) },
    ...pageCalls.value,
  ].slice(0, MAX_PAGE_CALLS)
  const end = (how: Partial<PageCall>) =>
    change(id, { ...how, ms: performance.now() - one.began, cancel: undefined as never })
  if (!client) return end({ error: { message: 'Not connected' } })
  try {
    const begun = (number: number) => remember(number, id)
    end({ result: await client.call(method, params, { ...options, signal: controller.signal, begun }) })
  } catch (error) {
    const { message, code, data } = error as Error & { code?: number; data?: unknown }
    end({ error: { message, code, data } })
  }
}

/** The calls of the page that are kept, by the numbers of the client. */
const numbers = new Map<number, number>()

function remember(number: number, id: number): void {
  numbers.set(number, id)
  for (const oldest of numbers.keys()) {
    if (numbers.size <= MAX_PAGE_CALLS) return
    numbers.delete(oldest)
  }
}

function change(id: number, how: Partial<PageCall>): void {
  pageCalls.value = pageCalls.value.map((one) => (one.id === id ? { ...one, ...how } : one))
}

function open(name: string, as: string): Promise<TryClient> {
  return connectTry({
    revision: as,
    send: (request) => fromBridge(`try?server=${encodeURIComponent(name)}`, request),
    ask,
    on: onEvent,
  })
}

function onEvent(event: TryEvent): void {
  if (event.kind === 'sent' || event.kind === 'received') return
  const number = 'call' in event ? numbers.get(event.call) : undefined
  const id = number ?? pageCalls.value.find(({ cancel }) => cancel)?.id
  if (id === undefined) return
  pageCalls.value = pageCalls.value.map((one) =>
    one.id === id ? { ...one, events: [...one.events, event].slice(-MAX_CALL_EVENTS) } : one,
  )
}

function ask(question: TryQuestion, signal: AbortSignal): Promise<JsonRecord> {
  // Servers ask for roots at any time: the first call would wait for a person.
  if (question.method === 'roots/list') return Promise.resolve({ roots: rootsNamed() })
  return new Promise((resolve, reject) => {
    const id = ++lastId
    const drop = () => {
      waitingQuestions.value = waitingQuestions.value.filter((one) => one.id !== id)
    }
    const answer = (result: JsonRecord) => {
      drop()
      resolve(result)
    }
    signal.addEventListener('abort', () => {
      drop()
      reject(new Error('The server no longer waits for the answer'))
    })
    waitingQuestions.value = [...waitingQuestions.value, { ...question, id, recorded: recordedFor(question), answer }]
  })
}

function rootsNamed(): { uri: string }[] {
  const uris = roots.value.split('\n').map((line) => line.trim())
  return uris.filter(Boolean).map((uri) => ({ uri }))
}

/** The next recorded answer to a question of a repeated call. */
function recordedFor({ method, call }: TryQuestion): JsonRecord | undefined {
  const id = call === undefined ? undefined : numbers.get(call)
  const one = pageCalls.value.find((each) => (id === undefined ? each.cancel !== undefined : each.id === id))
  const at = one?.answers?.findIndex((answer) => answer.method === method) ?? -1
  if (!one?.answers || at < 0) return undefined
  const { [at]: answer } = one.answers
  change(one.id, { answers: one.answers.filter((each) => each !== answer) })
  return answer?.result
}

/** The items that a client of the other era sees; undefined if they cannot be listed. */
async function listAsOther(name: string, { era }: TryClient): Promise<Map<string, JsonRecord> | undefined> {
  try {
    const other = await connectTry({
      revision: era === 'modern' ? REVISIONS[1] : REVISIONS[0],
      send: (request) => fromBridge(`try?server=${encodeURIComponent(name)}`, request),
      ask: () => Promise.reject(new Error('No questions while listing')),
    })
    const listed = await listAll(other)
    other.close().catch(() => {})
    return listed
  } catch {
    return undefined
  }
}

async function hiddenOf(name: string): Promise<HiddenItems> {
  const response = await fromBridge(`catalogue?server=${encodeURIComponent(name)}`).catch(() => undefined)
  if (response?.ok) return (await response.json()) as HiddenItems
  return { hidden: [], problem: 'The bridge did not answer what it hides.' }
}

/** Everything that a server lists, by kind and name. */
async function listAll(from: TryClient): Promise<Map<string, JsonRecord>> {
  const found = new Map<string, JsonRecord>()
  for (const kind of KINDS) {
    const { items: listed } = await listOf(from, kind).catch(() => ({ items: [] }))
    for (const item of listed) found.set(`${kind} ${nameOf(kind, item)}`, item)
  }
  return found
}

function joined(here: Map<string, JsonRecord>, there: Map<string, JsonRecord> | undefined): Item[] {
  const keys = new Set([...here.keys(), ...(there?.keys() ?? [])])
  return [...keys].map((key) => {
    const at = key.indexOf(' ')
    const seen = here.get(key)
    return { kind: key.slice(0, at) as Kind, name: key.slice(at + 1), here: seen, there: there ? there.get(key) : seen }
  })
}

function nameOf(kind: Kind, item: JsonRecord): string {
  return String(kind === 'resources' ? item['uri'] : kind === 'templates' ? item['uriTemplate'] : item['name'])
}
