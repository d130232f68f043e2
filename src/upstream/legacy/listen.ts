/**
 * Answers `subscriptions/listen` (MCP 2026-07-28, basic/patterns/subscriptions) for a legacy server: with the
 * notifications of its session, and with `resources/subscribe` for each resource.
 */

import { MAX_UNREAD, MAX_URIS } from '../../limits/constants.js'
import type { Reservation } from '../../limits/memory.js'
import type { Call, Final } from '../../protocol/call.js'
import { withoutEnvelope } from '../../protocol/meta.js'
import {
  acknowledgement,
  filterOf,
  isAbout,
  isNothing,
  type SubscriptionFilter,
  UPDATED,
} from '../../protocol/subscriptions.js'
import { EMPTY, edit, OWN, objectIn, type Payload, sizeOf, textUnder, value } from '../../rpc/splice.js'
import { pause } from '../../time/pause.js'
import { within } from '../../time/time.js'
import type { LegacySession } from './session.js'
import type { LegacySessions } from './sessions.js'
import type { LegacyTasks } from './tasks.js'

/** Milliseconds for which to try to open another session, and between two attempts. */
const BLIP = 30_000
const ATTEMPT = 1_000
/** Milliseconds that a server has to accept a subscription to a resource. */
const AGREE_WITHIN = 2_000

/**
 * Acknowledges a subscription and reports its changes. If the session is lost, continues in another one and reports
 * everything as changed. Ends with an empty result if the server no longer accepts as much as before. Throws a Fault
 * before the acknowledgement.
 */
export async function listen(sessions: LegacySessions, call: Call, tasks: LegacyTasks): Promise<Final> {
  const wanted = filterOf(call, MAX_URIS)
  let acknowledged: SubscriptionFilter | undefined
  let attempts = 0
  while (!call.signal.aborted) {
    const session = acknowledged ? await useAgain(sessions, call) : await useSession(sessions, call)
    if (!session) break
    try {
      await session.settled()
      const listening = new Listening(session, call, tasks)
      try {
        const honoured = await listening.start(acknowledged ?? wanted)
        // A session that was lost before has accepted nothing. Another one may accept more.
        const isStale = !acknowledged && listening.isLost && attempts++ === 0
        if (!isStale) {
          if (acknowledged && !isAsMuch(honoured, acknowledged)) break
          if (acknowledged) listening.missed()
          else {
            await call.tell(acknowledgement(honoured))
            if (isNothing(honoured)) break
          }
          acknowledged ??= honoured
          await listening.tellChanges()
        }
      } finally {
        listening.stop()
      }
      call.signal.throwIfAborted()
      session.discard()
    } finally {
      session.unuse()
    }
  }
  return { kind: 'result', result: EMPTY }
}

/** One subscription in one session. */
class Listening {
  readonly #session: LegacySession
  readonly #call: Call
  readonly #tasks: LegacyTasks
  readonly #unread: { method: string; params: Payload }[] = []
  /** The reservation for changes that wait to be read. Small amounts are free. */
  readonly #reservation: Reservation
  #bytes = 0
  readonly #uris: string[] = []
  #lists: ReadonlySet<string> = new Set()
  isLost = false
  #dropped = 0
  #stopped = false
  #wake = () => {}

  constructor(session: LegacySession, call: Call, tasks: LegacyTasks) {
    this.#session = session
    this.#reservation = session.reserve(call.principal)
    this.#call = call
    this.#tasks = tasks
  }

  /** Begins to listen. Returns the part that the server accepts. */
  async start({ lists, uris, tasks }: SubscriptionFilter): Promise<SubscriptionFilter> {
    const { capabilities } = this.#session.handshake
    const receives = this.#session.receives !== false
    const declares = (name: string, what: string) => {
      const offered = objectIn(capabilities, name)
      return receives && offered !== undefined && value(offered, what) === true
    }
    const honoured = lists.filter(({ capability }) => declares(capability, 'listChanged'))
    this.#lists = new Set(honoured.map(({ method }) => method))
    this.#session.changeFeed.add(this)
    const subscribes = declares('resources', 'subscribe') ? uris : []
    await Promise.all(subscribes.map((uri) => this.#subscribe(uri)))
    const followed = this.#tasks.known(tasks, this.#call)
    for (const taskId of followed) this.#follow(taskId).catch(() => {})
    return { lists: honoured, uris: uris.filter((uri) => this.#uris.includes(uri)), tasks: followed }
  }

  async #follow(taskId: string): Promise<void> {
    for await (const params of this.#tasks.follow(taskId, this.#call)) {
      if (this.#stopped) return
      this.#keep({ method: 'notifications/tasks', params })
    }
  }

  #keep(change: { method: string; params: Payload }): void {
    const bytes = this.#bytes + sizeOf(change.params)
    if (this.#unread.length >= MAX_UNREAD || this.#reservation.resize(bytes)) {
      if (this.#dropped++ === 0)
        this.#call.log.warn({ event: 'changes_dropped' }, 'changes dropped: the client reads too slowly')
      return
    }
    this.#bytes = bytes
    this.#unread.push(change)
    this.#wake()
  }

  #next(): { method: string; params: Payload } | undefined {
    const next = this.#unread.shift()
    if (!next) return undefined
    this.#bytes -= sizeOf(next.params)
    this.#reservation.resize(this.#bytes)
    return next
  }

  changed(method: string, params: Payload): void {
    const wanted = method === UPDATED ? this.#covers(textUnder(params, 'uri')) : this.#lists.has(method)
    if (wanted) this.#keep({ method, params })
  }

  /** Reports everything as changed, because changes may have been lost. */
  missed(): void {
    for (const method of this.#lists) this.#keep({ method, params: EMPTY })
    for (const uri of this.#uris) this.#keep({ method: UPDATED, params: edit(OWN, { uri: JSON.stringify(uri) }) })
  }

  lost(): void {
    this.isLost = true
    this.#wake()
  }

  /** Sends changes until the session is lost or the call is cancelled. */
  async tellChanges(): Promise<void> {
    const { signal, tell } = this.#call
    const wake = () => this.#wake()
    signal.addEventListener('abort', wake)
    try {
      while (!signal.aborted) {
        const next = this.#next()
        if (next)
          await tell({ kind: 'notification', method: next.method, params: withoutEnvelope(next.params, {}, 'server') })
        else if (this.isLost) return
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      signal.removeEventListener('abort', wake)
    }
  }

  stop(): void {
    this.#stopped = true
    this.#reservation.end()
    this.#session.changeFeed.remove(this)
    for (const uri of this.#uris) this.#session.changeFeed.unsubscribe(uri)
  }

  async #subscribe(uri: string): Promise<void> {
    const agreed = this.#session.changeFeed.subscribe(uri)
    if (await within(agreed, AGREE_WITHIN)) this.#uris.push(uri)
    else agreed.then((late) => late && this.#session.changeFeed.unsubscribe(uri)).catch(() => {})
  }

  /** Whether a resource is subscribed to, itself or as a sub-resource. */
  #covers(uri: string): boolean {
    return this.#uris.some((one) => isAbout(uri, one))
  }
}

/** The session of the call. */
async function useSession(sessions: LegacySessions, call: Call): Promise<LegacySession> {
  const opening = sessions.use(call)
  return opening instanceof Promise ? sessions.opened(call, opening) : opening
}

/** A session in place of a lost one; undefined if none could be opened in time. */
async function useAgain(sessions: LegacySessions, call: Call): Promise<LegacySession | undefined> {
  for (const deadline = performance.now() + BLIP; performance.now() < deadline && !call.signal.aborted; ) {
    try {
      return await sessions.use(call)
    } catch {
      await pause(ATTEMPT, call.signal)
    }
  }
  return undefined
}

/** Whether another session accepts as many lists and resources as the lost one. The tasks of the lost one are gone. */
function isAsMuch(honoured: SubscriptionFilter, { lists, uris }: SubscriptionFilter): boolean {
  return honoured.lists.length === lists.length && honoured.uris.length === uris.length && !isNothing(honoured)
}
