/** What viewers change in the memory of the inspector: they keep texts, pin calls, and clear. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault/fault.js'
import { callOf, type Inspected, NO_CALL, queryOf, refuse } from './answers.js'
import type { TextSwitch } from './other-source.js'
import { MAX_PINNED_CALLS } from './retained-events.js'

/** Milliseconds for which a viewer can keep the texts of all calls. */
const KEPT_FOR = 5 * 60 * 1_000

export async function keptNow(inspected: Inspected) {
  const { kept, hasTexts } = textsOf(inspected)
  return { ...kept, hasTexts }
}

export async function keepTexts(inspected: Inspected, request: FastifyRequest, reply: FastifyReply) {
  const keep = queryOf(request).get('keep')
  if (keep !== 'all' && keep !== 'configured') return refuse(reply, 'invalidRequest', 'keep is all or configured')
  const texts = textsOf(inspected)
  texts.keepAll(keep === 'all' ? KEPT_FOR : 0)
  const { payloads, until } = texts.kept
  const end = until === undefined ? {} : { until: new Date(until).toISOString() }
  const line = { event: 'inspector_payloads', from: request.ip, payloads, ...end } as const
  inspected.log?.info(line, 'inspector payloads changed')
  return keptNow(inspected)
}

export async function pinnedNow({ ring }: Inspected) {
  return { calls: ring.pinned, most: MAX_PINNED_CALLS }
}

export async function pin(inspected: Inspected, request: FastifyRequest, reply: FastifyReply) {
  const ids = await idsIn(inspected, request)
  if (!ids) return refuse(reply, 'noSuchPath', NO_CALL)
  const { ring } = inspected
  if (ids.every((id) => ring.pin(id) ?? true)) return pinnedNow(inspected)
  for (const id of ids) ring.unpin(id)
  const why = `Too many pinned calls (at most ${MAX_PINNED_CALLS}, fewer with long texts): unpin one first`
  return refuse(reply, 'invalidRequest', why)
}

export async function unpin(inspected: Inspected, request: FastifyRequest, reply: FastifyReply) {
  const ids = await idsIn(inspected, request)
  if (!ids) return refuse(reply, 'noSuchPath', NO_CALL)
  for (const id of ids) inspected.ring.unpin(id)
  return pinnedNow(inspected)
}

export async function clear(inspected: Inspected, request: FastifyRequest) {
  refuseOthers(inspected, request)
  const { ring, log } = inspected
  ring.clear()
  log?.info({ event: 'inspector_cleared', from: request.ip }, 'inspector memory cleared')
  return { last: ring.last }
}

/** The ids of a call and of those that continue it; undefined if it is unknown. */
async function idsIn(inspected: Inspected, request: FastifyRequest): Promise<string[] | undefined> {
  refuseOthers(inspected, request)
  const call = await callOf(inspected, queryOf(request).get('call') ?? '')
  return call && [call.id, ...call.parts]
}

function refuseOthers({ whyReadOnly }: Inspected, request: FastifyRequest): void {
  const why = whyReadOnly(request, 'pinning and clearing')
  if (why !== undefined) throw new Fault('insufficientScope', why)
}

function textsOf({ source, ring }: Inspected): TextSwitch {
  return source?.texts ?? ring
}
