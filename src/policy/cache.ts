/**
 * Keeps results for as long as they hold, and answers the same calls out of what is kept (MCP 2026-07-28,
 * server/utilities/caching). What is private is for who has asked for it, with the credential that went with it.
 *
 * A call that wants log messages or progress is answered like any other: both tell of work, and there is none.
 */
import { createHash } from 'node:crypto'
import type { BridgeEvent, Observe } from '../ports/events.js'
import type { CacheHint, Call, Handler, Policy, Reply, Sender } from '../protocol/call.js'
import { methodTraits } from '../protocol/methods.js'
import { isAbout, UPDATED } from '../protocol/subscriptions.js'
import { canonical } from '../rpc/canonical.js'
import { memoize } from '../rpc/memoize.js'
import { own } from '../rpc/own.js'
import { type Json, keys, value, write } from '../rpc/splice.js'
import { Listening } from './cache/listening.js'
import { type About, copyOf, type Kept, type Results } from './cache/results.js'

export interface CacheOptions {
  /** Names the server. */
  server: string
  /** For as long as the server says, or for so many milliseconds. */
  mode: 'hints' | number
  /** What the server does not call private is for everybody, and not only for who has asked for it before. */
  shared: boolean
  /** Where results are kept, of this server and of others. */
  results: Results
  /** Subscriptions that may be held to hear of changes. What is kept for further callers lives by its time only. */
  subscriptions: number
  observe?: Observe | undefined
}

/** Something that a server says has changed. */
type Notice = Pick<Reply & { kind: 'notification' }, 'method' | 'params'>

/** A call of which the result may be kept, while it is with the server. */
interface Fetching extends About {
  /** Something that it is about has changed since it began. */
  stale: boolean
}

/** Where the result of a call is kept if it is kept at all: for who asks, or for everybody. */
interface Places {
  own: Place
  everybody: Place | undefined
}

type Place = Pick<Kept, 'scope' | 'key'>

/** Milliseconds for which nothing is kept any longer, whatever a server says. */
const MAX_LIFETIME = 3_600_000
/** Characters of parameters: nobody asks the same again with more. */
const MAX_PARAMS = 8 * 1024
/** Keys of `_meta` on which no result depends. */
const TRACE_CONTEXT: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage'])
/** What does not hold any longer when a list has changed. A server with other things may say so of itself as well. */
const CHANGED: Readonly<Record<string, readonly string[]>> = {
  'notifications/tools/list_changed': ['tools/list', 'server/discover'],
  'notifications/prompts/list_changed': ['prompts/list', 'server/discover'],
  'notifications/resources/list_changed': [
    ...['resources/list', 'resources/templates/list', 'server/discover'],
    // The files of a skill are resources.
    ...['skills/list', 'skills/get', 'resources/directory/read'],
  ],
}
/** Methods whose result is about the resource that their `uri` names. */
const ABOUT_A_RESOURCE: ReadonlySet<string> = new Set(['resources/read', 'skills/get', 'resources/directory/read'])

/** Whether calls of a method have to come by here: their results are kept, or they hear of what has changed. */
export function isOfCache(method: string): boolean {
  return methodTraits(method).cacheable === true || method === 'subscriptions/listen'
}

export class Cache {
  readonly #options: CacheOptions
  /** Begins what keys are made of, because others keep their results in the same place. */
  readonly #id = crypto.randomUUID()
  readonly #kept = new Set<Kept>()
  readonly #fetching = new Set<Fetching>()
  /** Who listens, by the scope of what they listen for. */
  readonly #listening = new Map<string, Listening>()
  #closed = false

  constructor(options: CacheOptions) {
    this.#options = options
  }

  readonly policy: Policy = (next) => (call) => {
    if (call.method === 'subscriptions/listen') return this.#overheard(next(call))
    const params = this.#closed ? undefined : askedFor(call)
    return params === undefined ? next(call) : this.#answer(call, params, next)
  }

  /** Drops what a notice is about. What is being fetched of it is not kept when it comes. */
  drop({ method, params }: Notice): void {
    const methods = Object.hasOwn(CHANGED, method) ? CHANGED[method] : undefined
    if (methods) return this.#drop((about) => methods.includes(about.method))
    if (method !== UPDATED) return
    const updated = value(params, 'uri')
    if (typeof updated === 'string') this.#drop(({ uri }) => uri !== undefined && isAbout(updated, uri))
  }

  /** Drops everything: what has changed meanwhile may not have been heard. */
  missed(): void {
    this.#drop(() => true)
  }

  /** Drops everything, and listens to nothing any more. */
  close(): void {
    this.#closed = true
    for (const listening of this.#listening.values()) listening.stop()
    for (const { key } of [...this.#kept]) this.#options.results.delete(key)
  }

  async *#overheard(replies: AsyncIterable<Reply>): AsyncGenerator<Reply, void> {
    for await (const reply of replies) {
      if (reply.kind === 'notification') this.drop(reply)
      yield reply
    }
  }

  async *#answer(call: Call, params: Json, next: Handler): AsyncGenerator<Reply, void> {
    const places = this.#placesOf(call, params)
    const found = this.#find(places.own) ?? (places.everybody && this.#find(places.everybody))
    this.#observe(found ? 'hit' : 'miss')
    if (found) {
      call.log.note({ cached: true })
      yield found
      return
    }
    const fetching: Fetching = { ...aboutOf(call), stale: false }
    this.#fetching.add(fetching)
    try {
      for await (const reply of next(call)) {
        const complete = reply.kind === 'result' && reply.type === undefined
        if (complete && !fetching.stale && !call.signal.aborted) this.#keep(reply, call, places, next)
        yield reply
      }
    } finally {
      this.#fetching.delete(fetching)
    }
  }

  /** What is kept, with what remains of the time for which the server has said that it holds. */
  #find({ key }: Place): Reply | undefined {
    const { results } = this.#options
    const kept = results.get(key)
    if (!kept) return undefined
    const { result, server, hint, lifetime } = kept
    const remaining = results.getRemainingTTL(key)
    const left = (hint: CacheHint) => Math.min(hint.ttlMs - (lifetime - remaining), remaining)
    const cache = hint && { ...hint, ttlMs: Math.max(0, Math.floor(left(hint))) }
    return { kind: 'result', result, server, cache }
  }

  #keep({ result, server, cache: hint }: Reply & { kind: 'result' }, call: Call, places: Places, next: Handler): void {
    const { mode, shared, results } = this.#options
    const lifetime = Math.min(mode === 'hints' ? (hint?.ttlMs ?? 0) : mode, MAX_LIFETIME)
    const copy = lifetime > 0 && !this.#closed ? copyOf(result, server) : undefined
    if (!copy) return
    const isPublic = mode === 'hints' ? hint?.scope === 'public' : shared && hint?.scope !== 'private'
    const place = (isPublic && places.everybody) || places.own
    let listening: Listening | undefined
    const gone = () => {
      this.#kept.delete(kept)
      listening?.remove(kept)
    }
    const kept: Kept = { ...place, ...aboutOf(call), ...copy, hint, lifetime, gone }
    if (!results.keep(place.key, kept, lifetime)) return
    listening = this.#listenFor(place.scope, call, next)
    this.#kept.add(kept)
    listening?.add(kept)
    this.#observe('stored')
  }

  /** What a server says may depend on what its client can do: nobody shares anything with those who can do other things. */
  #placesOf(call: Call, params: Json): Places {
    const { mode, shared } = this.#options
    const { method, caller, principal, credential, paramHeaders } = call
    // Callers without headers are not shown tools that only those with headers can call.
    const what = digest(method, params, paramHeaders !== undefined)
    const capabilities = canonicalCapabilities(caller.capabilities)
    const placeOf = (...who: unknown[]): Place => {
      const scope = digest(this.#id, capabilities, ...who)
      return { scope, key: scope + what }
    }
    // Whether a credential of the caller's own is worth anything, only the server can tell.
    const mayBeShared = credential === undefined && (mode === 'hints' || shared)
    return { own: placeOf(principal, credential), everybody: mayBeShared ? placeOf() : undefined }
  }

  #listenFor(scope: string, { caller, principal, credential }: Call, next: Handler): Listening | undefined {
    const known = this.#listening.get(scope)
    if (known || this.#listening.size >= this.#options.subscriptions) return known
    const { revision, clientInfo, capabilities } = caller
    const asked = { revision, clientInfo: own(clientInfo), capabilities: own(capabilities) }
    const sender: Sender = { caller: asked, principal, credential }
    const listening = new Listening({
      next,
      sender,
      heard: (notice) => this.drop(notice),
      lost: () => {
        // What is on its way may be older than what was missed, whomever it is for.
        for (const fetching of this.#fetching) fetching.stale = true
        this.#forget((kept) => kept.scope === scope)
      },
      idle: () => this.#listening.delete(scope),
    })
    this.#listening.set(scope, listening)
    return listening
  }

  #drop(concerned: (about: About) => boolean): void {
    for (const fetching of this.#fetching) fetching.stale ||= concerned(fetching)
    this.#forget(concerned)
  }

  #forget(concerned: (kept: Kept) => boolean): void {
    for (const kept of [...this.#kept]) {
      if (!concerned(kept)) continue
      this.#options.results.delete(kept.key)
      this.#observe('dropped')
    }
  }

  #observe(what: Extract<BridgeEvent, { kind: 'cache' }>['what']): void {
    this.#options.observe?.({ kind: 'cache', server: this.#options.server, what })
  }
}

/**
 * What a call asks for, in the one way to write it; undefined where its result is neither to be kept nor to be one that was.
 * That of a retry depends on the answers that come with it, and what keys of others in `_meta` do, only the server knows.
 */
function askedFor({ method, params, meta, answers }: Call): Json | undefined {
  if (!methodTraits(method).cacheable || answers !== undefined) return undefined
  if (!keys(meta).every((key) => TRACE_CONTEXT.has(key))) return undefined
  const text = write(params)
  return text.length > MAX_PARAMS ? undefined : canonical(text)
}

function aboutOf({ method, params }: Call): About {
  const uri = ABOUT_A_RESOURCE.has(method) ? value(params, 'uri') : undefined
  return { method, uri: typeof uri === 'string' ? uri : undefined }
}

const canonicalCapabilities = memoize(canonical)

function digest(...parts: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
