/** Opens the session of a legacy client: through a tunnel to a legacy server, or translated by the bridge. */
import type { LegacyRoute, Sender } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { error as errorMessage, type Request } from '../../rpc/message.js'
import { CallLogEntry } from '../call-log.js'
import { metaOf } from '../read-message.js'
import type { Opened, OpenOptions } from './session.js'
import { TranslatedSession } from './translated-session.js'
import { TunnelSession } from './tunnel-session.js'

/**
 * Answers `initialize` and opens the session. `known` is the result of `legacyRoute`, if the caller has it already.
 * Never rejects: a failure is in `fault`.
 */
export async function openSession(
  request: Request,
  options: OpenOptions,
  known?: LegacyRoute | Fault,
): Promise<Opened> {
  const { upstream, log, transport } = options
  const record = new CallLogEntry(log, { clientEra: 'legacy', clientTransport: transport, method: request.method })
  const sender: Sender = { ...options.sender, caller: { revision: '', capabilities: '{}' } }
  record.follow(metaOf(request), options.trace)
  try {
    if (known instanceof Fault) throw known
    const route = known ?? (await upstream.legacyRoute(sender))
    // Over Streamable HTTP a lost session needs no reopening: the client gets 404 and opens another session itself.
    const tunnel = route === 'translate' ? undefined : await route.connect(request, sender, transport !== 'http')
    if (!tunnel) return await TranslatedSession.open(request, options, record)
    const { revision, opened } = tunnel
    record.note({ serverEra: 'legacy', ...(revision && { clientRevision: revision }) })
    record.answered(revision ? 'ok' : 'error')
    if (revision === undefined) return { text: opened }
    return { text: opened, session: new TunnelSession(tunnel, revision, options) }
  } catch (error) {
    const fault = Fault.from(error)
    record.failed(fault)
    return { text: errorMessage(request.id, fault.toRpcError()), fault }
  }
}
