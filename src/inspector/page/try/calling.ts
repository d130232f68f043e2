/** The state and the actions of the view Try: the client, the items that a server lists in both eras, open questions, and calls. */
import { signal } from '@preact/signals'
import type { Expected, RecordedAnswer } from '../../replay/recording.js'
import { completionsOf, connectTry } from '../../try/client.js'
import type { JsonRecord, TryCallOptions, TryClient, TryClientOptions, TryEvent, TryQuestion } from '../../try/types.js'
import { fromBridge, readFromBridge } from '../feed.js'
import { type HiddenList, hiddenOf, type Item, joined, listAll } from './lists.js'
import { keepSession, keptSession } from './sessions.js'
import { expanded } from './uri-template.js'

/** The revisions that the page speaks as a client, the newest first. */
export const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/** A question without an answer so far. */
export interface OpenQuestion extends Omit<TryQuestion, 'call'> {
  id: number
  /** The call of the page that waits for the answer, if it is known. */
  of: number | undefined
  /** The recorded answer, if the call is repeated. */
  recorded?: JsonRecord | undefined
  answer(result: JsonRecord): void
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
export const hiddenItems = signal<HiddenList>({ hidden: [] })
export const chosenItem = signal<Item | undefined>(undefined)
/** The answer to `roots/list`: one URI per line. */
export const roots = signal('')
export const waitingQuestions = signal<readonly OpenQuestion[]>([])
export const pageCalls = signal<readonly PageCall[]>([])
/** On a narrow screen, what is shown: the lists of the server, or the chosen item with the calls. */
export const side = signal<'lists' | 'calls'>('lists')

/** Most calls of the page that are kept, and events of one. */
const MAX_PAGE_CALLS = 50
const MAX_CALL_EVENTS = 500

let client: TryClient | undefined
let attempt = 0
let lastId = 0

/** Reads the targets of calls. */
export async function lookAtTargets(): Promise<void> {
  const body = await readFromBridge<{ try?: typeof allowed.value; targets?: typeof targets.value }>('servers')
  if (!body) return
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
  before?.leave().catch(() => {})
  try {
    const connected = await open(name, as, { ask, on: onEvent })
    if (own !== attempt) return void connected.leave().catch(() => {})
    client = connected
    server.value = connected.server
    connected.listen().catch(() => {})
    connecting.value = 'Listing …'
    const here = await listAll(connected)
    if (own !== attempt) return
    // They can be called while the program of the other session starts.
    items.value = joined(here, undefined)
    connecting.value = `Listing as a ${connected.era === 'modern' ? 'legacy' : 'modern'} client …`
    const there = await listAsOther(name, connected)
    if (own !== attempt) return
    listAnew(joined(here, there))
    connecting.value = undefined
    const hidden = await hiddenOf(name)
    if (own === attempt) hiddenItems.value = hidden
  } catch (error) {
    if (own === attempt) connecting.value = `Not connected: ${(error as Error).message}`
  }
}

/** Replaces the items. The chosen one stays chosen. */
function listAnew(listed: readonly Item[]): void {
  const { value: chosen } = chosenItem
  items.value = listed
  chosenItem.value = chosen && listed.find(({ kind, name }) => kind === chosen.kind && name === chosen.name)
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

/** Connects as a client of the revision, in the open session of this tab if there is one. */
async function open(name: string, as: string, { ask, on }: Pick<TryClientOptions, 'ask' | 'on'>): Promise<TryClient> {
  const send: TryClientOptions['send'] = (request) => fromBridge(`try?server=${encodeURIComponent(name)}`, request)
  const options = { revision: as, send, ask, on }
  const session = keptSession(name, as)
  const known = session && (await connectTry({ ...options, session }))
  const isOpen = await known?.call('ping').then(
    () => true,
    () => false,
  )
  const connected = known && isOpen ? known : await connectTry(options)
  if (connected.session) keepSession(name, as, connected.session)
  return connected
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

function ask({ call, ...question }: TryQuestion, signal: AbortSignal): Promise<JsonRecord> {
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
    const of = askedIn(call)
    const recorded = recordedFor(of, question.method)
    waitingQuestions.value = [...waitingQuestions.value, { ...question, id, of: of?.id, recorded, answer }]
    side.value = 'calls'
  })
}

function rootsNamed(): { uri: string }[] {
  const uris = roots.value.split('\n').map((line) => line.trim())
  return uris.filter(Boolean).map((uri) => ({ uri }))
}

/** The call that a question belongs to: by its number, or the only one that runs. */
function askedIn(number: number | undefined): PageCall | undefined {
  const id = number === undefined ? undefined : numbers.get(number)
  if (id !== undefined) return pageCalls.value.find((one) => one.id === id)
  const [only, ...others] = pageCalls.value.filter(({ cancel }) => cancel)
  return others.length === 0 ? only : undefined
}

/** The next recorded answer to a question of a repeated call. If the call is unknown, it is one that runs. */
function recordedFor(of: PageCall | undefined, method: string): JsonRecord | undefined {
  const among = of ? [of] : pageCalls.value.filter(({ cancel }) => cancel)
  for (const { id, answers = [] } of among) {
    const answer = answers.find((one) => one.method === method)
    if (!answer) continue
    change(id, { answers: answers.filter((one) => one !== answer) })
    return answer.result
  }
  return undefined
}

/** The items that a client of the other era sees; undefined if they cannot be listed. */
async function listAsOther(name: string, { era }: TryClient): Promise<Map<string, JsonRecord> | undefined> {
  try {
    const refuse = () => Promise.reject(new Error('No questions while listing'))
    const other = await open(name, era === 'modern' ? REVISIONS[1] : REVISIONS[0], { ask: refuse, on: undefined })
    const listed = await listAll(other)
    other.leave().catch(() => {})
    return listed
  } catch {
    return undefined
  }
}
