/**
 * Keeps the subscriptions of addresses to events apart. A server takes the callers of one account for one subscriber: who
 * knows the address, type and arguments of a subscription could end it, or replace its secret. So a subscription belongs to
 * the principal that made it; to others, it does not exist. Callers without a credential cannot be kept apart, so they get no
 * events at an address (SEP-3415, subscription identity). Whoever uses this machine is one person.
 */

import { digest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { canonical } from '../../base/rpc/canonical.js'
import { has, type Json, objectIn, type Payload, raw, stringUnder } from '../../base/rpc/splice.js'
import type { KeptOwners } from '../../mcp/ports/kept-owners.js'
import { tellsApart } from '../../mcp/protocol/account.js'
import { ANONYMOUS, type Call, type Final, type Handler, type Policy } from '../../mcp/protocol/call.js'
import { EVENT_LIST, EVENT_SUBSCRIBE } from '../../mcp/protocol/methods.js'
import { listWithoutWebhooks } from './callbacks.js'
import { isUnambiguous, stringIn } from './unambiguous.js'

export interface SubscribersOptions {
  server: string
  owners: KeptOwners
  /** Whether clients authenticate at the server themselves, also those without a token for the bridge. */
  passthrough: boolean
}

/** Milliseconds that an owner is remembered: while the server answers, after what it has granted, and at most. */
const WHILE_ASKED = 10 * 60_000
const AFTERWARDS = 60 * 60_000
const AT_MOST = 30 * 24 * 3_600_000

export function subscribers({ server, owners, passthrough }: SubscribersOptions): Policy {
  const nameOf = (call: Call) => `${server} ${keyOf(call.params)}`
  const ownerOf = ({ principal }: Call) => digest(principal)
  /** With the time, so that what is written again is another text, and is kept anew. */
  const ownedBy = (call: Call) => `${ownerOf(call)} ${Date.now()}`
  const isOf = (text: string, call: Call) => text.startsWith(`${ownerOf(call)} `)

  /** Takes a subscription for its caller. Resolves to whether it was nobody's; rejects with a Fault if it is somebody else's. */
  async function take(call: Call, name: string): Promise<boolean> {
    const own = ownedBy(call)
    const before = await owners.change(name, WHILE_ASKED, (text) => ({ text: text ?? own, result: text }))
    if (before === undefined) return true
    if (isOf(before, call)) return false
    call.foreign?.('foreignSubscription')
    throw new Fault('callbackRefused', 'Events cannot be sent there: the address is not free for this subscription')
  }

  async function subscribe(call: Call, next: Handler): Promise<Final> {
    const name = nameOf(call)
    const isNew = await take(call, name)
    const last = await next(call)
    if (last.kind === 'result') await keep(call, name, lifetimeOf(last.result))
    else if (isNew) await forget(call, name)
    return last
  }

  async function unsubscribe(call: Call, next: Handler): Promise<Final> {
    const name = nameOf(call)
    const owner = await owners.change(name, AT_MOST, (text) => ({ text, result: text }))
    if (owner === undefined || !isOf(owner, call)) {
      if (owner !== undefined) call.foreign?.('foreignSubscription')
      throw new Fault('noSuchEvent', 'There is no such subscription', { data: { kind: 'subscription' } })
    }
    const last = await next(call)
    if (last.kind === 'result') await forget(call, name)
    return last
  }

  function keep(call: Call, name: string, milliseconds: number): Promise<void> {
    return owners.change(name, milliseconds, () => ({ text: ownedBy(call), result: undefined }))
  }

  function forget(call: Call, name: string): Promise<void> {
    const without = (text: string | undefined) => (text !== undefined && isOf(text, call) ? undefined : text)
    return owners.change(name, AT_MOST, (text) => ({ text: without(text), result: undefined }))
  }

  const uses: Readonly<Record<string, (call: Call, next: Handler) => Promise<Final>>> = {
    [EVENT_SUBSCRIBE]: subscribe,
    'events/unsubscribe': unsubscribe,
  }
  return (next) => (call) => {
    const use = Object.hasOwn(uses, call.method) ? uses[call.method] : undefined
    if (tellsApart(call.principal, passthrough)) return use ? use(call, next) : next(call)
    if (call.principal !== ANONYMOUS) return next(call)
    if (use) throw new Fault('callbackRefused', 'Events are sent to an address only for callers that sign in')
    return call.method === EVENT_LIST ? listWithoutWebhooks(call, next) : next(call)
  }
}

/** What makes a subscription: its type, arguments and address. Throws a Fault unless all programs read the same. */
function keyOf(params: Payload): string {
  const delivery = isUnambiguous(params, 'delivery') ? objectIn(params, 'delivery') : undefined
  const [name, url] = [stringIn(params, 'name'), delivery && stringIn(delivery, 'url')]
  const isOne = isUnambiguous(params, 'arguments')
  if (name === undefined || url === undefined || !isOne)
    throw new Fault('invalidParams', 'params.name, arguments and delivery.url are required and must not be repeated')
  const given = has(params, 'arguments') ? canonicalOf(raw(params, 'arguments') as Json) : '{}'
  return digest(JSON.stringify([name, given === 'null' ? '{}' : given, url]))
}

function canonicalOf(json: Json): string {
  try {
    return canonical(json)
  } catch {
    throw new Fault('invalidParams', 'params.arguments cannot be compared')
  }
}

/** Milliseconds for which the owner of a granted subscription is remembered. */
function lifetimeOf(granted: Payload): number {
  const until = stringUnder(granted, 'refreshBefore')
  const left = typeof until === 'string' ? Date.parse(until) - Date.now() : Number.NaN
  return Number.isNaN(left) ? AT_MOST : Math.min(AT_MOST, Math.max(0, left) + AFTERWARDS)
}
