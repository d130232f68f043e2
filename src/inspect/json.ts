/** Events as JSON. Most of an event recurs in others: texts, HTTP heads, sides, lists of changes. Their JSON is remembered. */
import type { Seen } from '../ports/seen.js'
import { memoize } from '../rpc/memoize.js'

type Of<Kind> = Extract<Seen, { kind: Kind }>

/** What an event shares with others never changes. */
const known = new WeakMap<object, string>()
const text = memoize((value) => JSON.stringify(value))

/** The JSON of an event: the members that JSON.stringify writes, in another order. Members that few events have come last. */
export function jsonOf(seen: Seen): string {
  if (seen.kind === 'message') return messageJson(seen)
  return seen.kind === 'call' ? callJson(seen) : JSON.stringify(seen)
}

function messageJson(seen: Of<'message'>): string {
  const { seq, at, server, call, session, hop, dir, form, method, id, bytes, http, changes, of } = seen
  let json = `{"v":1,"seq":${seq},"at":${at},"kind":"message","hop":"${hop}","dir":"${dir}","form":"${form}","bytes":${bytes}`
  if (server !== undefined) json += `,"server":${text(server)}`
  if (call !== undefined) json += `,"call":${JSON.stringify(call)}`
  if (session !== undefined) json += `,"session":"${session}"`
  if (method !== undefined) json += `,"method":${text(method)}`
  if (id !== undefined) json += `,"id":${typeof id === 'number' ? id : JSON.stringify(id)}`
  if (http) json += `,"http":${shared(http)}`
  if (changes) json += `,"changes":${shared(changes)}`
  if (of !== undefined) json += `,"of":${of}`
  const { continues, more, payload } = seen
  if (continues === undefined && more === undefined && !payload) return `${json}}`
  return `${json},${JSON.stringify({ continues, more, payload }).slice(1)}`
}

function callJson(seen: Of<'call'>): string {
  const { seq, at, what, server, call, session, principal, client, upstream, method, name, relayed, outcome } = seen
  let json = `{"v":1,"seq":${seq},"at":${at},"kind":"call","what":"${what}","principal":${text(principal)},"client":${shared(client)}`
  if (server !== undefined) json += `,"server":${text(server)}`
  if (call !== undefined) json += `,"call":${JSON.stringify(call)}`
  if (session !== undefined) json += `,"session":"${session}"`
  if (upstream) json += `,"upstream":${shared(upstream)}`
  json += `,"method":${text(method)},"relayed":${relayed}`
  if (name !== undefined) json += `,"name":${text(name)}`
  if (outcome !== undefined) json += `,"outcome":"${outcome}"`
  const { ms, upstreamMs, continues, cancelled, code, fault, blame, why, trace } = seen
  if (ms !== undefined) json += `,"ms":${ms}`
  if (upstreamMs !== undefined) json += `,"upstreamMs":${upstreamMs}`
  if ((continues ?? cancelled ?? code ?? fault ?? blame ?? why ?? trace) === undefined) return `${json}}`
  return `${json},${JSON.stringify({ continues, cancelled, code, fault, blame, why, trace }).slice(1)}`
}

function shared(value: object): string {
  let json = known.get(value)
  if (json === undefined) {
    json = JSON.stringify(value)
    known.set(value, json)
  }
  return json
}
