/** What the relay needs to pass messages unchanged to a server over Streamable HTTP. */
import type { Relayed } from '../protocol/call.js'
import type { Detection } from './era/detection.js'
import { callFault, contradicts, errorIn, refusedCall } from './failure.js'
import type { HttpTransport } from './transport/http.js'
import { channelError } from './transport/origin.js'

/** Describes a server to the relay: its address, its era, and what its failures mean. */
export function relayedBy(transport: HttpTransport, detection: Detection): Relayed {
  return {
    ...transport.address,
    speaks: () => {
      const verdict = detection.current
      return verdict?.transport === transport ? verdict.era : undefined
    },
    turned: async (era, sender) => {
      if (detection.current?.era === era) detection.forget()
      const verdict = await detection.known(sender).catch(() => undefined)
      return verdict !== undefined && verdict.era !== era
    },
    failed: (error) => callFault(channelError(error)),
    refused: (refusal) => {
      const { status } = refusal
      const answered = status >= 400 && status !== 401 && status !== 403 && errorIn(refusal) !== undefined
      return answered ? undefined : refusedCall(refusal)
    },
    contradicts,
  }
}
