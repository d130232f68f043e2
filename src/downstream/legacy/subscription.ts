/**
 * What changes at a modern server, for one legacy session: one `subscriptions/listen` carries all of it, and is replaced
 * by another, made before the first is broken, when the client wants to hear of something else.
 */
import type { Log } from '../../logging.js'
import type { Reply } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import type { Loan } from '../../protocol/memory.js'
import {
  ACKNOWLEDGED,
  CHANGING_LISTS,
  type ChangingList,
  checkAddresses,
  UPDATED,
} from '../../protocol/subscriptions.js'
import { EMPTY, edit, type Json, objectIn, type Payload, parseObject, textUnder, value } from '../../rpc/splice.js'
import { within } from '../../time.js'

export interface ChangesOptions {
  /** Capabilities of the server, as the client was told of them. */
  offered: Payload
  /** Sends a `subscriptions/listen`. */
  listen(params: Payload, controller: AbortController): AsyncIterable<Reply>
  /** What the subscription is made of is lent by this. */
  loan: Loan
  /** Tells the client. */
  deliver(method: string, params: Payload): void
  log: Pick<Log, 'debug'>
}

interface Listening {
  uris: ReadonlySet<string>
  controller: AbortController
  /** The filter that the server has agreed to; rejects with a Fault where it has refused. */
  agreed: Promise<Payload>
  /** When that was. */
  since: number
}

/** Milliseconds. */
const AGREE_WITHIN = 10_000
const REOPEN = { first: 1_000, most: 30_000 }
const SERVED_WELL = 30_000
const MAX_URIS = 1_000

export class Changes {
  readonly #options: ChangesOptions
  readonly #lists: readonly ChangingList[]
  readonly #subscribes: boolean
  #uris: ReadonlySet<string> = new Set()
  #current: Listening | undefined
  /** All subscriptions that are open or being opened. */
  readonly #open = new Set<AbortController>()
  #order: Promise<unknown> = Promise.resolve()
  #reopening: NodeJS.Timeout | undefined
  #failures = 0
  #started = false
  #stopped = false

  constructor(options: ChangesOptions) {
    this.#options = options
    this.#lists = CHANGING_LISTS.filter(({ capability }) => {
      const offered = objectIn(options.offered, capability)
      return offered !== undefined && value(offered, 'listChanged') === true
    })
    const resources = objectIn(options.offered, 'resources')
    this.#subscribes = resources !== undefined && value(resources, 'subscribe') === true
  }

  /** There is somebody to tell now. */
  start(): void {
    if (this.#started || this.#stopped) return
    this.#started = true
    if (this.#lists.length > 0) this.#inOrder(() => this.#change(this.#uris)).catch(() => {})
  }

  /** Rejects with a Fault where the server does not want to tell of this resource. */
  subscribe(uri: string): Promise<void> {
    if (!this.#subscribes) throw new Fault('methodNotFound', 'The server does not tell of changes to resources')
    return this.#inOrder(async () => {
      if (this.#uris.has(uri) && this.#current) return
      if (this.#uris.size >= MAX_URIS)
        throw new Fault('invalidParams', `A session may subscribe to ${MAX_URIS} resources`)
      const uris = new Set([...this.#uris, uri])
      checkAddresses(uris)
      this.#options.loan.demand(weightOf(uris))
      await this.#change(uris, uri).finally(() => this.#options.loan.hold(weightOf(this.#uris)))
    })
  }

  unsubscribe(uri: string): Promise<void> {
    return this.#inOrder(async () => {
      if (!this.#uris.has(uri)) return
      // That it could not be made smaller is not the client's worry: what it does not want is not told.
      const rest = new Set([...this.#uris].filter((other) => other !== uri))
      await this.#change(rest).catch(() => {
        this.#uris = rest
      })
      this.#options.loan.hold(weightOf(rest))
    })
  }

  stop(): void {
    this.#stopped = true
    this.#options.loan.end()
    clearTimeout(this.#reopening)
    this.#current = undefined
    // Among them may be one that the server has not answered yet.
    for (const controller of this.#open) controller.abort()
  }

  #inOrder<T>(what: () => Promise<T>): Promise<T> {
    const done = this.#order.then(what)
    this.#order = done.catch(() => {})
    return done
  }

  /** Listens for other resources. What was listened to before goes on until the server has agreed. */
  async #change(uris: ReadonlySet<string>, wanted?: string): Promise<void> {
    if (this.#stopped) return
    clearTimeout(this.#reopening)
    if (uris.size === 0 && (this.#lists.length === 0 || !this.#started)) {
      this.#uris = uris
      this.#current?.controller.abort()
      this.#current = undefined
      return
    }
    const next = this.#listen(uris, wanted)
    const agreed = await within(next.agreed, AGREE_WITHIN)
    if (agreed) return
    next.controller.abort()
    throw new Fault('upstreamTimeout', 'The server did not answer the subscription in time')
  }

  #listen(uris: ReadonlySet<string>, wanted: string | undefined): Listening {
    const controller = new AbortController()
    let agree: (filter: Payload) => void = () => {}
    let refuse: (error: unknown) => void = () => {}
    const agreed = new Promise<Payload>((resolve, reject) => {
      agree = resolve
      refuse = reject
    })
    agreed.catch(() => {})
    const listening: Listening = { uris, controller, agreed, since: 0 }
    const onAgreed = (filter: Payload) => {
      if (wanted !== undefined && !honours(filter, wanted)) {
        controller.abort()
        return refuse(new Fault('invalidParams', 'The server does not tell of changes to this resource'))
      }
      this.#replaceBy(listening)
      agree(filter)
    }
    this.#read(listening, onAgreed).then(
      () => refuse(new Fault('upstreamClosed', 'The server has ended the subscription')),
      (error: unknown) => refuse(error),
    )
    return listening
  }

  /** From here on the other one tells, and the old one is silent. */
  #replaceBy(listening: Listening): void {
    const before = this.#current
    this.#current = listening
    this.#uris = listening.uris
    listening.since = performance.now()
    before?.controller.abort()
  }

  async #read(listening: Listening, onAgreed: (filter: Payload) => void): Promise<void> {
    let agreed: Payload | undefined
    let gap = true
    this.#open.add(listening.controller)
    try {
      for await (const reply of this.#options.listen(this.#filter(listening.uris), listening.controller)) {
        if (reply.kind === 'notification') {
          if (reply.method === ACKNOWLEDGED) {
            agreed = objectIn(reply.params, 'notifications') ?? EMPTY
            onAgreed(agreed)
          } else if (this.#current === listening && this.#wants(reply.method, reply.params)) {
            this.#options.deliver(reply.method, reply.params)
          }
        } else {
          if (reply.kind === 'error') throw new Fault('methodNotFound', reply.error.message)
          gap = false
        }
      }
    } finally {
      this.#open.delete(listening.controller)
      if (this.#current === listening && !this.#stopped) {
        if (performance.now() - listening.since >= SERVED_WELL) this.#failures = 0
        this.#lost(agreed, gap)
      }
    }
  }

  /** A subscription that served has come to its end, and is wanted still. */
  #lost(agreed: Payload | undefined, gap: boolean): void {
    this.#current = undefined
    const empty = agreed !== undefined && agreed.members.length === 0
    if (empty && this.#uris.size === 0) return
    const wait = Math.min(REOPEN.first * 2 ** this.#failures++, REOPEN.most)
    this.#reopening = setTimeout(() => {
      this.#inOrder(() => this.#change(this.#uris))
        .then(() => (gap ? this.#tellAll() : undefined))
        .catch((error: unknown) => {
          const retries = !this.#stopped && !isRefusal(error)
          const message = retries ? 'subscription failed; retrying' : 'subscription failed'
          this.#options.log.debug({ event: 'subscription_failed', err: error }, message)
          if (retries) this.#lost(undefined, true)
        })
    }, wait)
    this.#reopening.unref()
  }

  /** What has changed while nobody listened is not known: anything may have. */
  #tellAll(): void {
    for (const { method } of this.#lists) this.#options.deliver(method, EMPTY)
    for (const uri of this.#uris) this.#options.deliver(UPDATED, edit(EMPTY, { uri: JSON.stringify(uri) }))
  }

  #filter(uris: ReadonlySet<string>): Payload {
    const filter: Record<string, Json> = {}
    if (this.#started) for (const list of this.#lists) filter[list.filter] = 'true'
    if (uris.size > 0) filter['resourceSubscriptions'] = JSON.stringify([...uris])
    return parseObject(`{"notifications":{${Object.entries(filter).map(([key, json]) => `"${key}":${json}`)}}}`)
  }

  #wants(method: string, params: Payload): boolean {
    if (method === UPDATED) {
      const uri = textUnder(params, 'uri')
      return [...this.#uris].some((subscribed) => uri.startsWith(subscribed))
    }
    return this.#lists.some((list) => list.method === method)
  }
}

/** What addresses weigh: as they are known here, and as they have been sent. */
function weightOf(uris: ReadonlySet<string>): number {
  let bytes = 0
  for (const { length } of uris) bytes += 2 * length
  return bytes
}

/** Whether a filter that a server has agreed to has the resource in it. */
function honours(filter: Payload, uri: string): boolean {
  const uris = value(filter, 'resourceSubscriptions')
  return Array.isArray(uris) && uris.includes(uri)
}

function isRefusal(error: unknown): boolean {
  return error instanceof Fault && (error.fault === 'methodNotFound' || error.fault === 'invalidParams')
}
