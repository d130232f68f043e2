/** Options that all transports over HTTP share. */
import type { onRequestHookHandler } from 'fastify'
import type { Memory } from '../../base/limits/memory.js'
import type { Replicas } from '../../mcp/ports/replicas.js'
import type { Upstream } from '../../mcp/protocol/upstream.js'
import type { SessionSettings } from '../legacy/session.js'
import type { Logger } from '../logger.js'
import type { ForwardedStreams } from './forwarded-streams.js'
import type { Refusals } from './refusals.js'

/** What a server or group is served with, over all transports of HTTP. */
export interface ServedOptions {
  /** Meets each request whose caller is known. */
  arrived?: onRequestHookHandler | undefined
  upstream: Upstream
  log: Logger
  settings: SessionSettings
  memory: Memory
  /** Counts and logs requests that are refused before they become calls. */
  refusals: Refusals
  /** The other replicas, if there are several. */
  replicas: Replicas | undefined
  /** Registers endless streams of other replicas. */
  forwarded?: ForwardedStreams | undefined
}
