/**
 * Checks where a server is to send its events. The address that a client gives for that has to be on the operator's list,
 * and on the public Internet. Without a list, no type of events is shown as one that can be sent to an address.
 *
 * The server sends the events, so it alone can check what a name resolves to at that time, and must not follow redirects.
 */

import { Fault } from '../../base/fault/fault.js'
import { edit, mapElements, objectIn, type Payload, value } from '../../base/rpc/splice.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { printable } from '../../base/texts/printable.js'
import { type Call, type Final, type Handler, type Policy, withResult } from '../../mcp/protocol/call.js'
import { EVENT_LIST, EVENT_SUBSCRIBE } from '../../mcp/protocol/methods.js'
import { isUnambiguous, stringIn } from './unambiguous.js'

export interface CallbacksOptions {
  /** Addresses that events may be sent to. One without a path allows all of its origin, others also what is below them. */
  allowed: readonly string[]
  /** Why an address is not on the public Internet; undefined if it is. */
  whyNotPublic(url: URL): Promise<string | undefined>
}

const WEBHOOK = 'webhook'
/** Most characters of an address. */
const MAX_CALLBACK = 2_048
/** Escapes that some programs read as a separator of a path, or as the beginning of one. */
const AMBIGUOUS_PATH = /%(?:2e|2f|5c|25)/i

export function callbacks({ allowed, whyNotPublic }: CallbacksOptions): Policy {
  const places = allowed.map((one) => new URL(one))

  async function check(call: Call): Promise<void> {
    const url = callbackOf(call)
    if (allowed.length === 0) throw refused(url, 'no address is allowed: the operator lists them in "events.callbacks"')
    if (!places.some((place) => isWithin(url, place))) throw refused(url, 'it is not in "events.callbacks"')
    const why = await whyNotPublic(url)
    if (why !== undefined) throw refused(url, why)
  }

  async function subscribe(call: Call, next: Handler): Promise<Final> {
    await check(call)
    return next(call)
  }

  return (next) => (call) => {
    if (call.method === EVENT_SUBSCRIBE) return subscribe(call, next)
    return call.method === EVENT_LIST && allowed.length === 0 ? listWithoutWebhooks(call, next) : next(call)
  }
}

/** The address in a subscription. Throws a Fault unless all programs read the same one. */
function callbackOf({ params }: Call): URL {
  const delivery = isUnambiguous(params, 'delivery') ? objectIn(params, 'delivery') : undefined
  const given = delivery && stringIn(delivery, 'url')
  if (given === undefined)
    throw new Fault('invalidParams', 'params.delivery.url must be a string and must not be repeated')
  const url = given.length <= MAX_CALLBACK ? parseUrl(given) : undefined
  // What is written otherwise may be another address for another parser.
  if (!url || (url.href !== given && url.href !== `${given}/`)) throw malformed()
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.hash !== '') throw malformed()
  if (url.hostname.endsWith('.')) throw malformed()
  return url
}

function malformed(): Fault {
  return new Fault(
    'invalidParams',
    'params.delivery.url has to be an https:// address in its usual form, without a user and a fragment',
  )
}

function refused({ host }: URL, why: string): Fault {
  return new Fault('callbackRefused', `Events cannot be sent to ${printable(host)}: ${printable(why, 300)}`)
}

function isWithin(url: URL, place: URL): boolean {
  if (url.origin !== place.origin) return false
  if (place.pathname === '/') return true
  if (AMBIGUOUS_PATH.test(url.pathname)) return false
  const folder = place.pathname.replace(/\/$/, '')
  return url.pathname === folder || url.pathname.startsWith(`${folder}/`)
}

/** The types of events that a caller may use without an address. */
export async function listWithoutWebhooks(call: Call, next: Handler): Promise<Final> {
  return withResult(await next(call), withoutWebhooks)
}

/** A list of types of events, as those that are sent in answers alone. */
function withoutWebhooks(page: Payload): Payload {
  const events = mapElements(page, 'events', (type) => {
    const modes: unknown = value(type, 'delivery')
    if (!Array.isArray(modes) || !modes.includes(WEBHOOK)) return type
    const left = modes.filter((mode) => mode !== WEBHOOK)
    return left.length === 0 ? [] : edit(type, { delivery: JSON.stringify(left) })
  })
  return events === undefined ? page : edit(page, { events })
}
