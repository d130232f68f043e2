/**
 * The upstream half of the modern era: answers calls through channels to a modern server. Every call is complete in
 * itself, so there are channels, but no sessions.
 */

import { digest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { faults } from '../../base/fault/faults.js'
import { MAX_MIRRORED } from '../../base/limits/constants.js'
import { SMALL } from '../../base/limits/memory.js'
import { Recent } from '../../base/rpc/memoize.js'
import type { Params } from '../../base/rpc/message.js'
import { detach, wireOf } from '../../base/rpc/source.js'
import {
  EMPTY,
  edit,
  type Json,
  NO_ORIGIN,
  objectIn,
  type Payload,
  parseObject,
  raw,
  stringUnder,
  textUnder,
  value,
} from '../../base/rpc/splice.js'
import { pause } from '../../base/time/pause.js'
import { unlessAborted } from '../../base/time/time.js'
import type { ChangeNotice } from '../../mcp/ports/replicas.js'
import type { Account } from '../../mcp/protocol/account.js'
import { withoutMisannotated } from '../../mcp/protocol/annotations.js'
import { bridgeCall } from '../../mcp/protocol/bridge-call.js'
import {
  type Call,
  type Final,
  type Handler,
  type Notice,
  type ServerNotification,
  unchangedBytes,
} from '../../mcp/protocol/call.js'
import { isModern, NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { checkParamHeaders, paramHeaders, requestHeaders } from '../../mcp/protocol/headers.js'
import { hasOwnKeys, withoutEnvelope } from '../../mcp/protocol/meta.js'
import { CALL_TOOL, isWantedLevel, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import { decodeReceived, decodeReply, encodeNotice, encodeParams } from '../../mcp/protocol/modern-server.js'
import { filterIn, isChange, wants } from '../../mcp/protocol/subscriptions.js'
import { starting } from '../era/starting.js'
import type { Arrival, Exchange } from '../exchange.js'
import {
  answerOf,
  Contradiction,
  callFault,
  cancelReason,
  contradicts,
  credentialOf,
  type ErrorResponse,
  repeatable,
  worthRepeating,
} from '../failure.js'
import type { Access, Half } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ToolCache, type ToolFacts } from '../tools.js'
import type { ChannelError } from '../transport/channel.js'
import { ModernChannels, subscriptionEnded } from './channels.js'

type Headers = Readonly<Record<string, string>>
type Heard = Extract<Arrival, { kind: 'notification' }>

/** Milliseconds for the answer to `tools/list`. */
const LIST_TIMEOUT = 10_000
/** Maximum characters of capabilities that become part of a key. Longer ones are replaced by a digest. */
const SHORT = 256

export class ModernHalf implements Half {
  readonly handle: Handler
  readonly #options: ServerOptions
  readonly #isProgram: boolean
  readonly #channels: ModernChannels
  readonly #owned: Access['tasks']
  readonly #tools = new Recent<ToolCache>({ dropped: (cache) => cache.close() })
  readonly #headers = new Recent<Headers>()

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#isProgram = options.transport.kind === 'stdio'
    this.#channels = new ModernChannels(options, access)
    this.#owned = access.tasks
    const half = this
    this.handle = async function answerFromModern(asked) {
      const { signal, method } = asked
      const concernsTasks = method === LISTEN || method.startsWith('tasks/')
      const call = concernsTasks ? await half.#ofOwnTasks(asked) : asked
      const isTool = method === CALL_TOOL
      let mayRepeat = true
      /** The tools may be listed again, because the tool is not as known. */
      let mayList = true
      for (;;) {
        let peer: Peer | undefined
        let exchange: Exchange | undefined
        const hangUp = () => {
          if (exchange) peer?.release(exchange, cancelReason(signal))
        }
        try {
          peer = half.#channels.currentPeer(call) ?? (await half.#opened(call))
          const { transport } = peer.channel
          call.log.note({ serverEra: 'modern', serverRevision: NEWEST_MODERN, serverTransport: transport })
          const mirrors = isTool && transport === 'http' && call.paramHeaders === undefined
          let tool: ToolFacts | undefined
          if (mirrors) {
            const tools = half.#toolsOf(call)
            const name = stringUnder(call.params, 'name')
            // The schema of an unknown tool says which arguments are mirrored into headers.
            if (typeof name === 'string')
              tool = tools.known(name) ?? (await unlessAborted(tools.findOnce(name), signal))
          }
          if (isTool && transport === 'stdio' && call.paramHeaders) await half.#checkMirrored(call)
          const bytes = call.received?.bytes && unchangedBytes(call)
          const headers = transport === 'http' ? half.#headersOf(call, tool, bytes !== undefined) : undefined
          exchange = peer.beginExchange(call.principal, call)
          signal.addEventListener('abort', hangUp, { once: true })
          signal.throwIfAborted()
          half.#send(peer, exchange, call, bytes, headers)
          let last: Final | undefined
          while (!last) {
            let arrival: Arrival
            try {
              arrival = await exchange.nextArrival()
            } catch (error) {
              arrival = answerOf(error, notModern(call))
            }
            if (arrival.kind === 'response')
              last = call.received?.era === 'modern' ? decodeReceived(call, arrival) : decodeReply(call, arrival)
            else if (arrival.kind === 'notification') {
              const held = half.#told(call, exchange, arrival)
              if (held) await held
            }
          }
          peer.release(exchange)
          exchange = undefined
          if (method === 'tools/list') return half.#listed(peer, call, last)
          if (last.kind === 'result' && last.type === 'task') return half.#created(call, last)
          if (last.kind !== 'error') return last
          throwIfContradictory(call, last)
          if (last.error.code !== faults.headerMismatch.code || !mirrors || !mayList) return last
          // The tool's schema, which says which arguments are mirrored into headers, is unknown or has changed.
          mayList = false
          const tools = half.#toolsOf(call)
          tools.forget()
          await tools.find(textUnder(call.params, 'name'))
        } catch (error) {
          if (error instanceof Contradiction) throw error
          const again = mayRepeat && !signal.aborted
          const wait = again ? worthRepeating(error, half.#repeatable(call)) : undefined
          if (wait === undefined) throw callFault(error, call.received?.bytes !== undefined)
          mayRepeat = false
          mayList = false
          hangUp()
          await pause(wait, signal)
        } finally {
          signal.removeEventListener('abort', hangUp)
          if (exchange) hangUp()
        }
      }
    }
  }

  /** Sends a call. `bytes`: its params, if they are unchanged. `headers`: those of HTTP. */
  #send(peer: Peer, exchange: Exchange, call: Call, bytes: Uint8Array | undefined, headers: Headers | undefined): void {
    const { method, progress } = call
    const { cacheable, named } = methodTraits(method)
    const received = headers && call.received?.era === 'modern' ? call.received : undefined
    exchange.account = this.#options.accounts?.for(call)
    exchange.wireId = received?.id
    if (bytes) exchange.origin = received?.source
    // A large answer is read if it may be cached, or may have the result of a task.
    exchange.passesUnread = received !== undefined && !cacheable && named !== 'taskId'
    const token = !progress ? undefined : received ? received.progressToken : String(exchange.id)
    peer.send(exchange, method, (received && bytes) ?? encodeParams(call, token), headers)
  }

  async notify(notice: Notice): Promise<void> {
    const { method, received } = notice
    const peer = await this.#channels.open(notice)
    const headers = { ...requestHeaders(method, EMPTY), ...credentialOf(notice), ...received?.forwarded }
    const account = this.#options.accounts?.for(notice)
    if (!received || peer.channel.transport !== 'http')
      return peer.notify(method, encodeNotice(notice), { headers, account })
    const { bytes, source, hear } = received
    try {
      await peer.notify(method, bytes ?? encodeNotice(notice), { headers, account, origin: source, heard: received })
    } catch (error) {
      const { outcome, http } = answerOf(error, notModern())
      hear(wireOf(outcome.source), http)
    }
  }

  /** Passes a change from another replica's process to subscriptions. Over HTTP, the server itself reports it. */
  onReplicaChange({ who, method, params }: ChangeNotice): void {
    if (!this.#isProgram) return
    for (const exchange of this.#channels.running()) {
      const { call } = exchange
      if (call?.method !== LISTEN || call.principal !== who) continue
      if (wants(filterIn(call.params), { method, params })) exchange.arrive({ kind: 'notification', method, params })
    }
  }

  #tellOthers(call: Call, method: string, params: Params): void {
    const { replicas, name: server } = this.#options
    if (!replicas || !this.#isProgram || call.method !== LISTEN || !isChange(method)) return
    const payload = typeof params === 'string' ? EMPTY : params
    replicas.tell({ server, who: call.principal, method, params: withoutEnvelope(payload, {}, 'server') })
  }

  close(hurry: boolean): Promise<void> {
    return this.#channels.close(hurry)
  }

  /** Opens the channel for a call. Reports to the caller while a program is starting. */
  #opened(call: Call): Promise<Peer> {
    const opening = this.#channels.open(call)
    return this.#isProgram ? starting(call, opening, this.#options.timeouts) : opening
  }

  #told(call: Call, exchange: Exchange, { method, params, source }: Heard): Promise<void> | undefined {
    if (method === 'notifications/cancelled') {
      if (methodTraits(call.method).endless) exchange.fail(subscriptionEnded())
      return undefined
    }
    if (method === 'notifications/tools/list_changed') this.#toolsOf(call).forget()
    // Changes from other replicas have no source, and are not reported to the replicas again.
    if (source) this.#tellOthers(call, method, params)
    const notification = notificationOf(call, method, params)
    if (!notification) return undefined
    const isMended = method === 'notifications/tasks' || (typeof params === 'object' && hasOwnKeys(params))
    if (source && exchange.wireId !== undefined && !isMended)
      notification.received = { era: 'modern', source, notification }
    return call.notify(notification)
  }

  /** A call about tasks of its caller. Rejects with a Fault if it names one of somebody else. */
  async #ofOwnTasks(call: Call): Promise<Call> {
    if (!this.#owned.tellsApart(call.principal)) return call
    const params = await this.#owned.asked(call.principal, call.method, call.params)
    return params === call.params ? call : { ...call, params }
  }

  /** Remembers whose task a call has become. */
  async #created(call: Call, reply: Final): Promise<Final> {
    const taskId = reply.kind === 'result' ? stringUnder(reply.result, 'taskId') : undefined
    if (taskId !== undefined && this.#owned.tellsApart(call.principal)) await this.#owned.keep(call.principal, taskId)
    return reply
  }

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
  #headersOf(call: Call, tool: ToolFacts | undefined, isUnchanged: boolean): Headers {
    if (tool?.misannotated !== undefined)
      throw new Fault('invalidParams', `The tool cannot be called: ${tool.misannotated}`)
    const { named } = methodTraits(call.method)
    // The key needs no credential: if credentials are passed through, they determine the principal.
    const key = `${call.method} ${named === undefined ? '' : raw(call.params, named)} ${call.principal}`
    let headers = this.#headers.get(key)
    if (!headers) {
      if (named !== undefined && typeof stringUnder(call.params, named) !== 'string')
        throw new Fault('invalidParams', `params.${named} has to be a string`)
      headers = checkLength(
        requestHeaders(call.method, call.params),
        named === undefined ? 'The method' : `params.${named}`,
      )
      headers = { ...headers, ...credentialOf(call) }
      this.#headers.set(key, headers)
    }
    const { forwarded, received, paramHeaders: given } = call
    const name = isUnchanged ? received?.nameHeader : undefined
    if (forwarded) headers = { ...headers, ...forwarded }
    if (name !== undefined && name !== headers['mcp-name']) headers = { ...headers, 'mcp-name': name }
    if (given !== undefined && given.size > 0) headers = { ...headers, ...Object.fromEntries(given) }
    if (!tool || tool.annotations.length === 0) return headers
    const mirrored = paramHeaders(tool.annotations, objectIn(call.params, 'arguments'))
    return checkLength({ ...headers, ...mirrored }, 'The sum of the arguments that the tool mirrors into headers')
  }

  #toolsOf(call: Call): ToolCache {
    const { principal, caller } = call
    const { capabilities } = caller
    // A server may list other tools for other principals or capabilities.
    const key = `${principal} ${capabilities.length > SHORT ? digest(capabilities) : capabilities}`
    let cache = this.#tools.get(key)
    if (!cache) {
      const listing = listingFor(call)
      const account = this.#options.accounts?.for(call)
      cache = new ToolCache(
        async (cursor) => listTools(await this.#channels.open(listing), listing, cursor, account),
        this.#options.memory.reserve(principal, SMALL),
      )
      this.#tools.set(key, cache)
    }
    return cache
  }

  #repeatable(call: Call): boolean {
    if (call.answers) return false
    return repeatable(call, call.method === CALL_TOOL ? this.#toolsOf(call) : undefined, this.#options.retry)
  }
}

/** Throws a Fault if headers made from a request are longer than HTTP servers usually accept. */
function checkLength(headers: Headers, what: string): Headers {
  let length = 0
  for (const name in headers) length += name.length + (headers[name] as string).length
  if (length <= MAX_MIRRORED) return headers
  throw new Fault('invalidParams', `${what} is too long for HTTP headers (at most ${MAX_MIRRORED} bytes)`)
}

/** A call that lists the tools for the same caller. It keeps no reference to the given call, which may be large. */
function listingFor({ caller, principal, credential }: Call): Call {
  const { revision, clientInfo, capabilities } = caller
  const own = { revision, clientInfo: detach(clientInfo), capabilities: detach(capabilities) }
  return bridgeCall('tools/list', { caller: own, principal, credential })
}

async function listTools(
  peer: Peer,
  call: Call,
  cursor: Json | undefined,
  account: Account | undefined,
): Promise<Payload> {
  const params = cursor === undefined ? NO_ORIGIN : edit(NO_ORIGIN, { cursor })
  const listing: Call = { ...call, params }
  const headers = { ...requestHeaders('tools/list', params), ...credentialOf(call) }
  const answer = await peer.call('tools/list', encodeParams(listing, undefined), LIST_TIMEOUT, { headers, account })
  const reply = decodeReply(listing, answer)
  if (reply.kind !== 'result') throw new Fault('upstreamProtocol', 'The server did not answer tools/list with a result')
  return reply.result
}

/** Throws a Contradiction if an error shows that the server has changed its era. */
function throwIfContradictory(call: Call, last: Extract<Final, { kind: 'error' }>): void {
  const { code, data, message } = last.error
  const isContradiction =
    (code === faults.unsupportedRevision.code && !supportsOurs(data)) ||
    (code === faults.methodNotFound.code && call.method === 'server/discover')
  if (isContradiction) throw new Contradiction('modern', message, last)
}

/** A notification of the call for its caller; undefined if the caller did not ask for it. */
function notificationOf(call: Call, method: string, params: Params): ServerNotification | undefined {
  const payload = withoutEnvelope(typeof params === 'string' ? EMPTY : params, {}, 'server')
  if (method === 'notifications/progress' && !call.progress) return undefined
  if (method === 'notifications/message' && !isWantedLevel(value(payload, 'level'), call.caller.logLevel))
    return undefined
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
  (call?: Call) =>
  (error: ChannelError, said: ErrorResponse | undefined): Error | undefined => {
    const { refusal } = error
    if (!refusal || !contradicts(refusal, 'modern', said)) return undefined
    const instead =
      said && call ? decodeReply(call, said) : callFault(error, !call || call.received?.bytes !== undefined)
    return new Contradiction('modern', `The server answered with HTTP ${refusal.status}`, instead)
  }
