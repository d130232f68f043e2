/**
 * Headers of callers that servers get (`forward`). In `credential`, they have the names that clients send until it is known
 * for which server a call is: each server gets those of its own list, and no others.
 */
import { shortDigest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { keyedPrincipal } from '../../base/texts/principal.js'
import type { Call, CallersHeaders, Policy, Sender } from '../../mcp/protocol/call.js'
import { refuse } from './refusal.js'

/** A header of callers, and its name for the server. Names are in lower case. */
export interface ForwardedHeader {
  from: string
  to: string
  isRequired: boolean
}

/** The `Authorization` that all servers get with `auth.passthrough`. */
const PASSED = 'authorization'

/** The headers of a request with these names, as servers of a list get them, or with their own names. Throws a Fault for one that comes twice. */
export function headersIn(rawHeaders: readonly string[], names: ReadonlySet<string>): CallersHeaders | undefined {
  const found: Record<string, string> = {}
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    const value = rawHeaders[i + 1]
    if (!names.has(name) || !value) continue
    // A proxy in front of the bridge may have read either.
    if (Object.hasOwn(found, name)) throw new Fault('invalidRequest', `The header ${name} appears twice`)
    found[name] = value
  }
  return Object.keys(found).length === 0 ? undefined : found
}

/** What a server gets of the headers of a caller. */
export function chosenFrom(
  headers: CallersHeaders | undefined,
  list: readonly ForwardedHeader[],
): CallersHeaders | undefined {
  if (!headers) return undefined
  const chosen: Record<string, string> = {}
  const passed = headers[PASSED]
  if (passed !== undefined) chosen[PASSED] = passed
  for (const { from, to } of list) {
    const value = headers[from]
    if (value !== undefined) chosen[to] = value
  }
  return Object.keys(chosen).length === 0 ? undefined : chosen
}

/** The principal of a person with such headers. They are in it as a digest only. */
export function principalWith(person: string, headers: CallersHeaders | undefined): string {
  if (!headers) return person
  const sorted = Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1))
  return keyedPrincipal(person, shortDigest(JSON.stringify([person, sorted])))
}

/** The first required header that a sender lacks. */
export function lackedBy(
  { credential = {} }: Pick<Sender, 'credential'>,
  list: readonly ForwardedHeader[],
): ForwardedHeader | undefined {
  return list.find(({ to, isRequired }) => isRequired && !Object.hasOwn(credential, to))
}

/** A policy that refuses callers without a required header; undefined if none is required. */
export function requiring(server: string, list: readonly ForwardedHeader[]): Policy | undefined {
  if (!list.some(({ isRequired }) => isRequired)) return undefined
  return (next) => (call: Call) => {
    const lacked = lackedBy(call, list)
    if (!lacked) return next(call)
    const { from } = lacked
    const text = `The server "${server}" requires the header ${from} of its callers: add it to the headers of your client, which has to be connected over HTTP`
    return Promise.resolve(refuse(call, { reason: 'header_missing', text, data: { header: from } }))
  }
}
