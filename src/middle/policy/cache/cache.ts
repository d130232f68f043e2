/**
 * Caches results and answers equal calls from the cache (MCP 2026-07-28, server/utilities/caching). A private result is
 * used only for the principal and the credential that asked for it.
 *
 * A call that asks for log messages or progress can be answered from the cache too: there is no work to report.
 */

import { digest } from '../../../base/crypto/digest.js'
import { canonical } from '../../../base/rpc/canonical.js'
import { memoize, Recent } from '../../../base/rpc/memoize.js'
import { detach } from '../../../base/rpc/source.js'
import { type Json, keys, stringUnder, write } from '../../../base/rpc/splice.js'
import type { BridgeEvent, Observe } from '../../../mcp/ports/events.js'
import type { CacheHint, Call, Final, Handler, Policy, Sender, ServerNotification } from '../../../mcp/protocol/call.js'
import { LISTEN, methodTraits } from '../../../mcp/protocol/methods.js'
import { isAbout, UPDATED } from '../../../mcp/protocol/subscriptions.js'
import { TRACE_HEADERS } from '../../../mcp/protocol/trace.js'
import { Listening } from './listening.js'
import { type CachedResult, copyOf, type ResultKey, type Results } from './results.js'

/** How one server's results are cached. */
export interface CacheOptions {
  server: string
  /** `hints`: for as long as the server says; a number: for that many milliseconds. */
  mode: 'hints' | number
  /** Share results between principals, unless the server calls them private. */
  shared: boolean
  /** The store for results of all servers. */
  results: Results
  /** Most subscriptions to changes. Results of further principals are dropped only when they expire. */
  subscriptions: number
  observe?: Observe | undefined
}

/** A notification of a change. */
type Notice = Pick<ServerNotification, 'method' | 'params'>

/** A call in flight whose result may be cached. */
interface Fetching extends ResultKey {
  /** Its subject has changed since it started. */
  stale: boolean
}

/** The keys under which a result may be cached: for the caller alone, and for everybody if it may be shared. */
interface Places {
  own: Place
  everybody: Place | undefined
}

type Place = Pick<CachedResult, 'scope' | 'key'>

/** Longest time in the cache, in milliseconds, whatever the server says. */
const MAX_LIFETIME = 3_600_000
/** Longest params, in characters; calls with longer ones are not cached. */
const MAX_CACHED_PARAMS = 8 * 1024
/**
 * The methods whose results a notification invalidates. Lists of tools, prompts or resources may also be part of
 * `server/discover`.
 */
const CHANGED: Readonly<Record<string, readonly string[]>> = {
  'notifications/tools/list_changed': ['tools/list', 'server/discover'],
  'notifications/prompts/list_changed': ['prompts/list', 'server/discover'],
  'notifications/resources/list_changed': [
    ...['resources/list', 'resources/templates/list', 'server/discover'],
    // The files of a skill are resources.
    ...['skills/list', 'skills/get', 'resources/directory/read'],
  ],
}
/** Methods whose result depends on the resource in `uri`. */
const ABOUT_A_RESOURCE: ReadonlySet<string> = new Set(['resources/read', 'skills/get', 'resources/directory/read'])

export class Cache {
  readonly #options: CacheOptions
  /** Prefix of this server's keys: all servers share one store. */
  readonly #id = crypto.randomUUID()
  readonly #kept = new Set<CachedResult>()
  readonly #fetching = new Set<Fetching>()
  /** Subscriptions by the scope of the results that they keep valid. */
  readonly #listening = new Map<string, Listening>()
  /** The places of recurring calls, by a text of everything that they depend on. */
  readonly #places = new Recent<Places>()
  #closed = false

  constructor(options: CacheOptions) {
    this.#options = options
  }

  readonly policy: Policy = (next) => (call) => {
    if (call.method === LISTEN) return next(this.#watched(call))
    const params = this.#closed ? undefined : cacheableParams(call)
    return params === undefined ? next(call) : this.#answer(call, params, next)
  }

  /** Drops the results that a notification invalidates. Results of calls in flight are not cached either. */
  drop({ method, params }: Notice): void {
    const methods = Object.hasOwn(CHANGED, method) ? CHANGED[method] : undefined
    if (methods) return this.#drop((about) => methods.includes(about.method))
    if (method !== UPDATED) return
    const updated = stringUnder(params, 'uri')
    if (typeof updated === 'string') this.#drop(({ uri }) => uri !== undefined && isAbout(updated, uri))
  }

  /** Drops everything: notifications may have been missed. */
  missed(): void {
    this.#drop(() => true)
  }

  /** Drops everything and ends all subscriptions. */
  close(): void {
    this.#closed = true
    for (const listening of this.#listening.values()) listening.stop()
    for (const { key } of [...this.#kept]) this.#options.results.delete(key)
  }

  /** The call of a subscription whose notifications also invalidate results. */
  #watched(call: Call): Call {
    const notify = (notification: ServerNotification) => {
      this.drop(notification)
      return call.notify(notification)
    }
    return { ...call, notify }
  }

  async #answer(call: Call, params: Json, next: Handler): Promise<Final> {
    const places = this.#placesOf(call, params)
    const found = this.#find(places.own) ?? (places.everybody && this.#find(places.everybody))
    this.#observe(found ? 'hit' : 'miss')
    if (found) {
      call.log.note({ cached: true })
      return found
    }
    const fetching: Fetching = { ...aboutOf(call), stale: false }
    this.#fetching.add(fetching)
    try {
      const last = await next(call)
      const complete = last.kind === 'result' && last.type === undefined
      if (complete && !fetching.stale && !call.signal.aborted) this.#keep(last, call, places, next)
      return last
    } finally {
      this.#fetching.delete(fetching)
    }
  }

  /** The cached result, with the remaining time of its hint. */
  #find({ key }: Place): Final | undefined {
    const { results } = this.#options
    const kept = results.get(key)
    if (!kept) return undefined
    const { result, server, hint, lifetime } = kept
    const remaining = results.getRemainingTTL(key)
    const left = (hint: CacheHint) => Math.min(hint.ttlMs - (lifetime - remaining), remaining)
    const cache = hint && { ...hint, ttlMs: Math.max(0, Math.floor(left(hint))) }
    return { kind: 'result', result, server, cache }
  }

  #keep({ result, server, cache: hint }: Final & { kind: 'result' }, call: Call, places: Places, next: Handler): void {
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
    const kept: CachedResult = { ...place, ...aboutOf(call), ...copy, hint, lifetime, gone }
    if (!results.keep(place.key, kept, lifetime)) return
    listening = this.#listenFor(place.scope, call, next)
    this.#kept.add(kept)
    listening?.add(kept)
    this.#observe('stored')
  }

  #placesOf(call: Call, params: Json): Places {
    const { method, caller, principal, paramHeaders } = call
    // Credentials are not stored.
    if (shownIn(call) !== undefined) return this.#newPlaces(call, params)
    // Unambiguous: a method has no space, and a JSON object ends with its bracket.
    const key = `${method} ${paramHeaders ? '+' : '-'}${params}${caller.capabilities}${principal}`
    const known = this.#places.get(key)
    if (known) return known
    const places = this.#newPlaces(call, params)
    this.#places.set(key, places)
    return places
  }

  /** Results may depend on the client's capabilities, so only clients with equal capabilities share them. */
  #newPlaces(call: Call, params: Json): Places {
    const { method, caller, principal, paramHeaders } = call
    const { mode, shared } = this.#options
    // Tools that need headers are not listed to callers without headers.
    const what = digestOf(method, params, paramHeaders !== undefined)
    const capabilities = canonicalCapabilities(caller.capabilities)
    const placeOf = (...who: unknown[]): Place => {
      const scope = digestOf(this.#id, capabilities, ...who)
      return { scope, key: scope + what }
    }
    // Only the server knows what a caller's own credential is for, so results for such callers are not shared.
    const shown = shownIn(call)
    const mayBeShared = shown === undefined && (mode === 'hints' || shared)
    return { own: placeOf(principal, shown), everybody: mayBeShared ? placeOf() : undefined }
  }

  #listenFor(scope: string, { caller, principal, credential, grant }: Call, next: Handler): Listening | undefined {
    const known = this.#listening.get(scope)
    if (known || this.#listening.size >= this.#options.subscriptions) return known
    const { revision, clientInfo, capabilities, reportsRoots } = caller
    const asked = { revision, clientInfo: detach(clientInfo), capabilities: detach(capabilities), reportsRoots }
    const sender: Sender = { caller: asked, principal, credential, grant }
    const listening = new Listening({
      next,
      sender,
      heard: (notice) => this.drop(notice),
      lost: () => {
        // Results in flight, for any principal, may be older than the missed notification.
        for (const fetching of this.#fetching) fetching.stale = true
        this.#forget((kept) => kept.scope === scope)
      },
      idle: () => this.#listening.delete(scope),
    })
    this.#listening.set(scope, listening)
    return listening
  }

  #drop(concerned: (about: ResultKey) => boolean): void {
    for (const fetching of this.#fetching) fetching.stale ||= concerned(fetching)
    this.#forget(concerned)
  }

  #forget(concerned: (kept: CachedResult) => boolean): void {
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
 * The canonical text of a call's params; undefined if its result must not be cached: it is a retry, whose result
 * depends on the answers, or its `_meta` has keys whose effect is unknown, or it is about one session of the server.
 */
function cacheableParams({ method, params, meta, answers, link }: Call): Json | undefined {
  if (!methodTraits(method).cacheable || answers !== undefined || link !== undefined) return undefined
  if (!keys(meta).every((key) => TRACE_HEADERS.has(key))) return undefined
  const text = write(params)
  return text.length > MAX_CACHED_PARAMS ? undefined : canonical(text)
}

function aboutOf({ method, params }: Call): ResultKey {
  const uri = ABOUT_A_RESOURCE.has(method) ? stringUnder(params, 'uri') : undefined
  return { method, uri: typeof uri === 'string' ? uri : undefined }
}

const canonicalCapabilities = memoize(canonical)

function digestOf(...parts: unknown[]): string {
  return digest(JSON.stringify(parts))
}

/** What identifies the caller to the server: the caller's own credential, or the digest of a token exchanged for it. */
function shownIn({ credential, grant }: Call): Call['credential'] | string {
  return credential ?? grant?.shown?.digest
}
