/** The upstream half of the modern era. Every call is complete in itself, so there are channels, but no sessions. */

import { digest } from '../../crypto/digest.js'
import { Fault } from '../../fault/fault.js'
import { MAX_MIRRORED } from '../../limits/constants.js'
import { SMALL } from '../../limits/memory.js'
import type { ChangeNotice } from '../../ports/replicas.js'
import type { Account } from '../../protocol/account.js'
import { withoutMisannotated } from '../../protocol/annotations.js'
import { type Call, type Final, type Handler, type Notice, type Told, unheard } from '../../protocol/call.js'
import { isModern, NEWEST_MODERN } from '../../protocol/eras.js'
import { checkParamHeaders, paramHeaders, requestHeaders } from '../../protocol/headers.js'
import { withoutEnvelope } from '../../protocol/meta.js'
import { atLeast, CALL_TOOL, isLogLevel, LISTEN, methodTraits } from '../../protocol/methods.js'
import { decodeReply, encodeNotice, encodeParams } from '../../protocol/modern-server.js'
import { isChange, wants } from '../../protocol/subscriptions.js'
import { Recent } from '../../rpc/memoize.js'
import type { Params } from '../../rpc/message.js'
import { own } from '../../rpc/own.js'
import {
  EMPTY,
  edit,
  type Json,
  OWN,
  objectIn,
  type Payload,
  parseObject,
  raw,
  textUnder,
  value,
} from '../../rpc/splice.js'
import { HangUp } from '../../time/hang-up.js'
import { pause, unlessAborted } from '../../time/time.js'
import { starting } from '../era/starting.js'
import type { Arrival } from '../exchange.js'
import {
  answerOf,
  Contradiction,
  callFault,
  contradicts,
  credentialOf,
  givenUpFor,
  repeatable,
  type Said,
  worthRepeating,
} from '../failure.js'
import type { Access, Half } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ToolCache, type ToolFacts } from '../tools.js'
import type { ChannelError } from '../transport/channel.js'
import { ModernChannels, subscriptionEnded } from './channels.js'

type Headers = Readonly<Record<string, string>>

/** Milliseconds for the answer to `tools/list`. */
const LIST_TIMEOUT = 10_000
/** Maximum characters of capabilities that become part of a key. Longer ones are replaced by a digest. */
const SHORT = 256
const HEADER_MISMATCH = -32020
const UNSUPPORTED_REVISION = -32022

export class ModernHalf implements Half {
  readonly handle: Handler
  readonly #options: ServerOptions
  readonly #isProgram: boolean
  readonly #channels: ModernChannels
  readonly #tools = new Recent<ToolCache>({ dropped: (cache) => cache.close() })
  readonly #headers = new Recent<Headers>()
  /** Changes from other replicas, which are not reported to the replicas again. */
  readonly #fromReplicas = new WeakSet<Payload>()

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#isProgram = options.transport.kind === 'stdio'
    this.#channels = new ModernChannels(options, access)
    const half = this
    this.handle = async function answerFromModern(call) {
      for (let attempt = 0; ; attempt++) {
        try {
          const peer = half.#channels.currentPeer(call) ?? (await half.#opened(call))
          return await half.#askServer(peer, call, attempt > 0)
        } catch (error) {
          if (error instanceof Contradiction) throw error
          const again = !call.signal.aborted && attempt === 0
          const wait = again ? worthRepeating(error, half.#repeatable(call)) : undefined
          if (wait === undefined) throw callFault(error)
          await pause(wait, call.signal)
        }
      }
    }
  }

  async notify(notice: Notice): Promise<void> {
    const peer = await this.#channels.open(notice)
    const headers = { ...requestHeaders(notice.method, EMPTY), ...credentialOf(notice) }
    await peer.notify(notice.method, encodeNotice(notice), headers, this.#options.accounts?.for(notice))
  }

  /** Passes a change from another replica's process to subscriptions. Over HTTP, the server itself reports it. */
  onReplicaChange({ who, method, params }: ChangeNotice): void {
    if (!this.#isProgram) return
    for (const exchange of this.#channels.running()) {
      const { call } = exchange
      if (call?.method !== LISTEN || call.principal !== who) continue
      const filter = objectIn(call.params, 'notifications')
      if (filter && wants(filter, method, params)) exchange.arrive({ kind: 'notification', method, params })
    }
    this.#fromReplicas.add(params)
  }

  #tellOthers(call: Call, method: string, params: Params): void {
    const { replicas, name: server } = this.#options
    if (!replicas || !this.#isProgram || call.method !== LISTEN || !isChange(method)) return
    const payload = typeof params === 'string' ? EMPTY : params
    if (this.#fromReplicas.has(payload)) return
    replicas.tell({ server, who: call.principal, method, params: withoutEnvelope(payload) })
  }

  close(hurry: boolean): Promise<void> {
    return this.#channels.close(hurry)
  }

  /** Opens the channel for a call. Reports to the caller while a program is starting. */
  #opened(call: Call): Promise<Peer> {
    const opening = this.#channels.open(call)
    return this.#isProgram ? starting(call, opening, this.#options.timeouts) : opening
  }

  /** Sends a call, and waits for its answer. `again`: a second attempt, after the tools have been listed again. */
  async #askServer(peer: Peer, call: Call, again: boolean): Promise<Final> {
    const { transport } = peer.channel
    call.log.note({ serverEra: 'modern', serverRevision: NEWEST_MODERN, serverTransport: transport })
    const isTool = call.method === CALL_TOOL
    const mirrors = isTool && transport === 'http' && call.paramHeaders === undefined
    let tool: ToolFacts | undefined
    if (mirrors) {
      const tools = this.#toolsOf(call)
      const name = value(call.params, 'name')
      // The schema of an unknown tool says which arguments are mirrored into headers.
      if (typeof name === 'string') tool = tools.known(name) ?? (await unlessAborted(tools.findOnce(name), call.signal))
    }
    if (isTool && transport === 'stdio' && call.paramHeaders) await this.#checkMirrored(call)
    const headers = transport === 'http' ? this.#headersOf(call, tool) : undefined
    const exchange = peer.beginExchange(call.principal, call)
    exchange.account = this.#options.accounts?.for(call)
    const hangUp = () => exchange.endExchange(givenUpFor(call.signal))
    call.signal.addEventListener('abort', hangUp, { once: true })
    let last: Final | undefined
    try {
      call.signal.throwIfAborted()
      exchange.sendCall(call.method, encodeParams(call, call.progress ? exchange.id : undefined), headers)
      while (!last) {
        let arrival: Arrival
        try {
          arrival = await exchange.nextArrival()
        } catch (error) {
          arrival = answerOf(error, notModern(call))
        }
        if (arrival.kind === 'question') continue
        if (arrival.kind === 'response') last = decodeReply(call, arrival)
        else if (arrival.method === 'notifications/cancelled') {
          if (call.method === LISTEN) exchange.fail(subscriptionEnded())
        } else {
          if (arrival.method === 'notifications/tools/list_changed') this.#toolsOf(call).forget()
          this.#tellOthers(call, arrival.method, arrival.params)
          const told = relayed(call, arrival.method, arrival.params)
          const held = told && call.tell(told)
          if (held) await held
        }
      }
    } finally {
      call.signal.removeEventListener('abort', hangUp)
      if (exchange.answered) exchange.endExchange()
      else hangUp()
    }
    if (call.method === 'tools/list') return this.#listed(peer, call, last)
    if (last.kind !== 'error') return last
    const { code, data, message } = last.error
    if (code === UNSUPPORTED_REVISION && !supportsOurs(data)) throw new Contradiction('modern', message, last)
    if (code === -32601 && call.method === 'server/discover') throw new Contradiction('modern', message, last)
    // The tool's schema, which says which arguments are mirrored into headers, is unknown or has changed: list the tools
    // again.
    if (code === HEADER_MISMATCH && mirrors && !again) {
      const tools = this.#toolsOf(call)
      tools.forget()
      await tools.find(textUnder(call.params, 'name'))
      return this.#askServer(peer, call, true)
    }
    return last
  }

  /** Takes a list of tools. */
  #listed(peer: Peer, call: Call, reply: Final): Final {
    if (reply.kind !== 'result') return reply
    this.#toolsOf(call).learn(reply.result, raw(call.params, 'cursor'))
    // Clients without headers cannot mirror arguments into them; the bridge does it for them.
    const forClients = peer.channel.transport === 'http' && call.paramHeaders === undefined
    return forClients ? { ...reply, result: withoutMisannotated(reply.result) } : reply
  }

  /**
   * Checks that `Mcp-Param-*` headers match the body. A server on stdio gets no headers, so it cannot check them
   * itself.
   */
  async #checkMirrored(call: Call): Promise<void> {
    if (call.paramHeaders === undefined) return
    const tool = await this.#toolsOf(call).find(textUnder(call.params, 'name'))
    if (tool) checkParamHeaders(tool.annotations, objectIn(call.params, 'arguments'), call.paramHeaders)
  }

  /**
   * The headers of a call, over HTTP. Headers that all calls of the same method, name and principal share are built once.
   * `tool`: set if the bridge mirrors its arguments into headers, and not the client.
   */
  #headersOf(call: Call, tool: ToolFacts | undefined): Headers {
    if (tool?.misannotated !== undefined)
      throw new Fault('invalidParams', `The tool cannot be called: ${tool.misannotated}`)
    const { named } = methodTraits(call.method)
    // The key needs no credential: if credentials are passed through, they determine the principal.
    const key = `${call.method} ${named === undefined ? '' : raw(call.params, named)} ${call.principal}`
    let headers = this.#headers.get(key)
    if (!headers) {
      if (named !== undefined && typeof value(call.params, named) !== 'string')
        throw new Fault('invalidParams', `params.${named} has to be a string`)
      headers = checkLength(
        requestHeaders(call.method, call.params),
        named === undefined ? 'The method' : `params.${named}`,
      )
      headers = { ...headers, ...credentialOf(call) }
      this.#headers.set(key, headers)
    }
    if (call.paramHeaders !== undefined) return { ...headers, ...Object.fromEntries(call.paramHeaders) }
    if (!tool || tool.annotations.length === 0) return headers
    const mirrored = paramHeaders(tool.annotations, objectIn(call.params, 'arguments'))
    return checkLength({ ...headers, ...mirrored }, 'The sum of the arguments that the tool mirrors into headers')
  }

  #toolsOf(call: Call): ToolCache {
    const key = toolsKey(call)
    let cache = this.#tools.get(key)
    if (!cache) {
      const listing = listingFor(call)
      const account = this.#options.accounts?.for(call)
      cache = new ToolCache(
        async (cursor) => listTools(await this.#channels.open(listing), listing, cursor, account),
        this.#options.memory.reserve(call.principal, SMALL),
      )
      this.#tools.set(key, cache)
    }
    return cache
  }

  #repeatable(call: Call): boolean {
    if (call.answers) return false
    return repeatable(call, this.#tools.get(toolsKey(call)), this.#options.retry)
  }
}

/** Throws a Fault if headers made from a request are longer than HTTP servers usually accept. */
function checkLength(headers: Headers, what: string): Headers {
  let length = 0
  for (const name in headers) length += name.length + (headers[name] as string).length
  if (length <= MAX_MIRRORED) return headers
  throw new Fault('invalidParams', `${what} is too long for HTTP headers (at most ${MAX_MIRRORED} bytes)`)
}

/** The key of a tool cache. A server may list other tools for other principals or capabilities. */
function toolsKey({ principal, caller: { capabilities } }: Call): string {
  return `${principal} ${capabilities.length > SHORT ? digest(capabilities) : capabilities}`
}

/** A call that lists the tools for the same caller. It keeps no reference to the given call, which may be large. */
function listingFor({ caller, principal, credential }: Call): Call {
  const { revision, clientInfo, capabilities } = caller
  return {
    method: 'tools/list',
    params: EMPTY,
    meta: EMPTY,
    progress: false,
    caller: { revision, clientInfo: own(clientInfo), capabilities: own(capabilities) },
    principal,
    credential,
    tell: unheard,
    signal: new HangUp(),
    abort() {},
    log: { note() {}, warn() {} },
  }
}

async function listTools(
  peer: Peer,
  call: Call,
  cursor: Json | undefined,
  account: Account | undefined,
): Promise<Payload> {
  const params = cursor === undefined ? OWN : edit(OWN, { cursor })
  const listing: Call = { ...call, params }
  const headers = { ...requestHeaders('tools/list', params), ...credentialOf(call) }
  const answer = await peer.call('tools/list', encodeParams(listing, undefined), LIST_TIMEOUT, { headers, account })
  const reply = decodeReply(listing, answer)
  if (reply.kind !== 'result') throw new Fault('upstreamProtocol', 'The server did not answer tools/list with a result')
  return reply.result
}

/** A notification of the call for its caller; undefined if the caller did not ask for it. */
function relayed(call: Call, method: string, params: Params): Told | undefined {
  const payload = withoutEnvelope(typeof params === 'string' ? EMPTY : params)
  const wanted = call.caller.logLevel
  if (method === 'notifications/progress' && !call.progress) return undefined
  if (method === 'notifications/message') {
    const level = value(payload, 'level')
    if (wanted === undefined || !isLogLevel(level) || !atLeast(level, wanted)) return undefined
  }
  return { kind: 'notification', method, params: payload }
}

/** Whether the data of an error lists a supported version that the bridge supports, too. */
function supportsOurs(data: Json | undefined): boolean {
  const supported = data?.startsWith('{') ? value(parseObject(data), 'supported') : undefined
  return Array.isArray(supported) && supported.some((version) => isModern(version))
}

/**
 * For `answerOf`: a Contradiction if no modern server sends such a refusal, because the server may have changed its
 * era.
 */
const notModern =
  (call: Call) =>
  (error: ChannelError, said: Said | undefined): Error | undefined => {
    const { refusal } = error
    if (!refusal || !contradicts(refusal, 'modern', said)) return undefined
    const instead = said ? decodeReply(call, said) : callFault(error)
    return new Contradiction('modern', `The server answered with HTTP ${refusal.status}`, instead)
  }
