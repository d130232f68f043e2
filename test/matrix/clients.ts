/** The table of clients. */
import type { Started } from '../support/bridge.js'
import { Client, type ClientOptions, type Era, type Json, type Question } from './client.js'
import { legacyHttpWire, legacySseWire, modernHttpWire } from './http.js'
import { pipeWire } from './pipe.js'
import type { Wire } from './wire.js'

export type TransportKind = 'HTTP' | 'HTTP+SSE' | 'stdio'

export interface ClientKind {
  era: Era
  transport: TransportKind
  wire(bridge: Started): Wire
}

export const CLIENTS: readonly ClientKind[] = [
  { era: 'modern', transport: 'HTTP', wire: ({ url }) => modernHttpWire(url) },
  { era: 'modern', transport: 'stdio', wire: ({ bridge }) => pipeWire(bridge) },
  { era: 'legacy', transport: 'HTTP', wire: ({ url }) => legacyHttpWire(url) },
  { era: 'legacy', transport: 'HTTP+SSE', wire: ({ url }) => legacySseWire(url) },
  { era: 'legacy', transport: 'stdio', wire: ({ bridge }) => pipeWire(bridge) },
]

export interface ClientPlan {
  capabilities?: Json
  answers?: (question: Question) => Json | undefined
}

export function connect(kind: ClientKind, bridge: Started, { capabilities = {}, answers }: ClientPlan = {}): Client {
  const { era, transport } = kind
  const options: ClientOptions = {
    era,
    wire: kind.wire(bridge),
    hangsUp: era === 'modern' && transport === 'HTTP',
    capabilities,
    ...(answers && { answers }),
  }
  return new Client(options)
}
