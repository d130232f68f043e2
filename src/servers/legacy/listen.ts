/**
 * Answers `subscriptions/listen` (MCP 2026-07-28, basic/patterns/subscriptions) for a legacy server: with the
 * notifications of its session, and with `resources/subscribe` for each resource.
 */

import { Fault } from '../../base/fault/fault.js'
import { MAX_URIS } from '../../base/limits/constants.js'
import type { Reservation } from '../../base/limits/memory.js'
import { EMPTY, type Payload } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'
import { ENDED, keepOpen } from '../../mcp/listening/keep-open.js'
import { PendingChanges } from '../../mcp/listening/pending-changes.js'
import type { Call, Final, ServerNotification } from '../../mcp/protocol/call.js'
import { withoutEnvelope } from '../../mcp/protocol/meta.js'
import {
  acknowledgement,
  changesIn,
  everythingIn,
  filterOf,
  isNothing,
  type SubscriptionFilter,
  wants,
} from '../../mcp/protocol/subscriptions.js'
import type { LegacySession } from './session.js'
import type { LegacySessions } from './sessions.js'
import type { LegacyTasks } from './tasks.js'

/** Milliseconds between attempts to continue in another session. */
const AGAIN = { first: 1_000, most: 1_000 }
/** Milliseconds that a server has to accept a subscription to a resource. */
const AGREE_WITHIN = 2_000

/** Acknowledges a subscription and reports its changes. If the session is lost, continues in another one. */
export async function listen(sessions: LegacySessions, call: Call, tasks: LegacyTasks): Promise<Final> {
  const wanted = filterOf(call, MAX_URIS)
  return keepOpen(call, {
    listen: (one, agreed) =>
      agreed
        ? listenIn(() => sessions.use(one), one, { wanted: agreed, tasks, isAgain: true })
        : listenIn(() => sessions.opened(one, sessions.use(one)), one, { wanted, tasks }),
    // The tasks of a lost session are gone.
    lasting: ({ lists, uris }) => ({ lists, uris, tasks: [] }),
    delays: AGAIN,
  })
}

interface Attempt {
  wanted: SubscriptionFilter
  tasks: LegacyTasks
  /** The client has an acknowledgement already. */
  isAgain?: boolean
}

/** Listens in a session until it is lost; then rejects. */
async function listenIn(
  use: () => LegacySession | Promise<LegacySession>,
  call: Call,
  { wanted, tasks, isAgain }: Attempt,
): Promise<Final> {
  for (let attempts = 0; ; attempts++) {
    const session = await use()
    try {
      await session.settled()
      const listening = new Listening(session, call, tasks)
      try {
        const honoured = await listening.start(wanted)
        // A session that was lost before has accepted nothing. Another one may accept more.
        const isStale = !isAgain && listening.isLost && attempts === 0
        if (!isStale) {
          await call.notify(acknowledgement(honoured))
          if (isNothing(honoured)) return ENDED
          await listening.tellChanges()
          attempts++
        }
      } finally {
        listening.stop()
      }
      call.signal.throwIfAborted()
      session.discard()
      if (attempts > 0) throw new Fault('upstreamClosed', 'The session with the server is lost')
    } finally {
      session.unuse()
    }
  }
}

class Listening {
  readonly #session: LegacySession
  readonly #call: Call
  readonly #tasks: LegacyTasks
  /** The reservation for changes that wait to be told. Small amounts are free. */
  readonly #reservation: Reservation
  readonly #pending: PendingChanges
  readonly #uris: string[] = []
  #lists: SubscriptionFilter['lists'] = []
  isLost = false
  #stopped = false

  constructor(session: LegacySession, call: Call, tasks: LegacyTasks) {
    this.#session = session
    this.#reservation = session.link.peer.reserve(call.principal)
    this.#pending = new PendingChanges({ call, reservation: this.#reservation })
    this.#call = call
    this.#tasks = tasks
  }

  /** Begins to listen. Returns the part that the server accepts. */
  async start({ lists, uris, tasks }: SubscriptionFilter): Promise<SubscriptionFilter> {
    const offered = changesIn(this.#session.receives === false ? EMPTY : this.#session.handshake.capabilities)
    this.#lists = lists.filter((list) => offered.lists.includes(list))
    this.#session.changeFeed.add(this)
    if (offered.subscribes) await Promise.all(uris.map((uri) => this.#subscribe(uri)))
    const followed = this.#tasks.known(tasks, this.#call)
    for (const taskId of followed) this.#follow(taskId).catch(() => {})
    return { lists: this.#lists, uris: uris.filter((uri) => this.#uris.includes(uri)), tasks: followed }
  }

  async #follow(taskId: string): Promise<void> {
    for await (const params of this.#tasks.follow(taskId, this.#call)) {
      if (this.#stopped) return
      this.#add({ method: 'notifications/tasks', params })
    }
  }

  changed(method: string, params: Payload): void {
    if (wants(this.#accepted, { method, params })) this.#add({ method, params })
  }

  missed(): void {
    for (const told of everythingIn(this.#accepted)) this.#add(told)
  }

  lost(): void {
    this.isLost = true
    this.#pending.end()
  }

  /** Tells changes until the session is lost or the call is cancelled. */
  tellChanges(): Promise<void> {
    return this.#pending.tellAll()
  }

  get #accepted() {
    return { lists: this.#lists, uris: this.#uris }
  }

  #add({ method, params }: Pick<ServerNotification, 'method' | 'params'>): void {
    this.#pending.add({ kind: 'notification', method, params: withoutEnvelope(params, {}, 'server') })
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
}
