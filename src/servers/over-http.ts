/** What is known of a server that is reached over Streamable HTTP, beside its calls. */
import type { OverHttp } from '../mcp/protocol/upstream.js'
import type { Detection } from './era/detection.js'
import { callFault } from './failure.js'
import { channelError } from './transport/answers.js'
import type { HttpTransport } from './transport/http.js'

export function overHttp(transport: HttpTransport, detection: Detection): OverHttp {
  const { url, dispatcher } = transport.origin
  return {
    url,
    dispatcher,
    speaks: () => {
      const verdict = detection.currentVerdict
      return verdict?.transport === transport ? verdict.era : undefined
    },
    failed: (error) => callFault(channelError(error)),
  }
}
