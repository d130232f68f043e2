/** Opens the session of a legacy client: with the server itself where it keeps sessions, or one that the bridge translates. */
import type { LegacyRoute, Sender } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { error as errorMessage, type Request } from '../../rpc/message.js'
import { CallLogEntry } from '../call-log.js'
import { metaOf } from '../read-message.js'
import type { Opened, OpenOptions } from './session.js'
import { TranslatedSession } from './translated-session.js'
import { TunnelSession } from './tunnel-session.js'

/** Opens a session, with the server's own if it has such a thing. Never rejects. */
export async function openSession(request: Request, options: OpenOptions, leg?: LegacyRoute | Fault): Promise<Opened> {
  const { upstream, log, transport } = options
  const record = new CallLogEntry(log, { clientEra: 'legacy', clientTransport: transport, method: request.method })
  const sender: Sender = { ...options.sender, caller: { revision: '', capabilities: '{}' } }
  record.follow(metaOf(request), options.trace)
  try {
    if (leg instanceof Fault) throw leg
    const way = leg ?? (await upstream.legacyRoute(sender))
    // Over Streamable HTTP the client is told by 404, and opens another session itself.
    const line = way === 'translate' ? undefined : await way.connect(request, sender, transport !== 'http')
    if (!line) return await TranslatedSession.open(request, options, record)
    record.note({ serverEra: 'legacy', ...(line.revision && { clientRevision: line.revision }) })
    record.answered(line.revision ? 'ok' : 'error')
    if (line.revision === undefined) return { text: line.opened }
    return { text: line.opened, session: new TunnelSession(line, line.revision, options) }
  } catch (error) {
    const fault = Fault.from(error)
    record.failed(fault)
    return { text: errorMessage(request.id, fault.toRpcError()), fault }
  }
}
