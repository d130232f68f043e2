/** Makes a client that servers can ask beside its calls of another one. */
import type { AskedClient } from './call.js'

/** The same client, asked in another way. */
export function askedBy(client: AskedClient, ask: AskedClient['ask']): AskedClient {
  const { principal, caller } = client
  return {
    principal,
    caller,
    get isThinking() {
      return client.isThinking
    },
    get isGone() {
      return client.isGone
    },
    ask,
  }
}
