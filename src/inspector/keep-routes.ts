/** The routes that change the memory of the inspector: they keep texts, pin calls, and clear. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INSPECT } from '../app/inspector-path.js'
import { Fault } from '../base/fault/fault.js'
import { error as errorMessage } from '../base/rpc/message.js'
import { MAX_PINNED_CALLS } from './retained-events.js'
import type { Ring } from './ring.js'
import type { CallView } from './views.js'

/** Which texts are kept, and the switch for it. */
export type TextSwitch = Pick<Ring, 'kept' | 'hasTexts' | 'keepAll'>

export interface KeepOptions {
  ring: Ring
  texts: TextSwitch
  /** The call with this id, or the one that the id continues. */
  callOf(id: string): Promise<CallView | undefined>
  /** The reason why the sender of a request may not pin or clear; undefined if it may. */
  whyNot(request: FastifyRequest): string | undefined
  /** Called when a viewer turns the storage of all texts on or off. */
  onPayloads(request: FastifyRequest, kept: Ring['kept']): void
  /** Called when a viewer clears the memory. */
  onClear(request: FastifyRequest): void
}

/** Milliseconds for which a viewer can keep the texts of all calls. */
const KEPT_FOR = 5 * 60 * 1_000

export async function keepRoutes(app: FastifyInstance, options: KeepOptions): Promise<void> {
  const { ring, texts } = options
  const kept = () => ({ ...texts.kept, hasTexts: texts.hasTexts })
  app.get(`${INSPECT}/payloads`, async () => kept())

  app.post(`${INSPECT}/payloads`, async (request, reply) => {
    const keep = queryOf(request).get('keep')
    if (keep !== 'all' && keep !== 'configured') return answer(reply, 'invalidRequest', 'keep is all or configured')
    texts.keepAll(keep === 'all' ? KEPT_FOR : 0)
    options.onPayloads(request, texts.kept)
    return kept()
  })

  const pinned = () => ({ calls: ring.pinned, most: MAX_PINNED_CALLS })
  app.get(`${INSPECT}/pins`, async () => pinned())

  app.route({
    method: ['POST', 'DELETE'],
    url: `${INSPECT}/pins`,
    handler: async (request, reply) => {
      refuseOthers(request)
      const id = queryOf(request).get('call') ?? ''
      const call = await options.callOf(id)
      if (!call) return answer(reply, 'noSuchPath', NO_CALL)
      const ids = [call.id, ...call.parts]
      if (request.method === 'DELETE') for (const one of ids) ring.unpin(one)
      else if (!ids.every((one) => ring.pin(one) ?? true)) {
        for (const one of ids) ring.unpin(one)
        return answer(
          reply,
          'invalidRequest',
          `Too many pinned calls (at most ${MAX_PINNED_CALLS}, fewer with long texts): unpin one first`,
        )
      }
      return pinned()
    },
  })

  app.post(`${INSPECT}/clear`, async (request) => {
    refuseOthers(request)
    ring.clear()
    options.onClear(request)
    return { last: ring.last }
  })

  function refuseOthers(request: FastifyRequest): void {
    const why = options.whyNot(request)
    if (why !== undefined) throw new Fault('insufficientScope', why)
  }
}

/** The message about a call that is not stored. */
export const NO_CALL = 'Unknown call: it may have left the memory of the inspector'

/** Answers a viewer with an error, which neither the log nor the inspector shows as a refused request. */
export function answer(reply: FastifyReply, name: 'noSuchPath' | 'invalidRequest', message: string): FastifyReply {
  const fault = new Fault(name, message)
  return reply.code(fault.status).type('application/json').send(errorMessage(undefined, fault.toRpcError()))
}

export function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URL(url, 'http://localhost').searchParams
}
