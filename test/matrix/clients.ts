/** The table of clients. */
import type { Started } from '../support/bridge.js'
import { Client, type ClientOptions, type Era, type Json, type Question } from './client.js'
import { legacyHttpWire, legacySseWire, modernHttpWire } from './http.js'
import { pipeWire } from './pipe.js'
import type { Wire } from './wire.js'

export type TransportKind = 'HTTP' | 'HTTP+SSE' | 'stdio'

/** A bridge, and the headers of all requests to it. */
export interface Reachable extends Started {
  headers?: Record<string, string>
}

export interface ClientKind {
  era: Era
  transport: TransportKind
  wire(bridge: Reachable): Wire
}

export const CLIENTS: readonly ClientKind[] = [
  { era: 'modern', transport: 'HTTP', wire: ({ url, headers }) => modernHttpWire(url, headers) },
  { era: 'modern', transport: 'stdio', wire: ({ bridge }) => pipeWire(bridge) },
  { era: 'legacy', transport: 'HTTP', wire: ({ url, headers }) => legacyHttpWire(url, headers) },
  { era: 'legacy', transport: 'HTTP+SSE', wire: ({ url, headers }) => legacySseWire(url, headers) },
  { era: 'legacy', transport: 'stdio', wire: ({ bridge }) => pipeWire(bridge) },
]

export interface ClientPlan {
  capabilities?: Json
  answers?: (question: Question) => Json | undefined
}

export function connect(kind: ClientKind, bridge: Reachable, { capabilities = {}, answers }: ClientPlan = {}): Client {
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
