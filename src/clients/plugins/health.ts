/** The endpoints for liveness, readiness, state and metrics: `/healthz`, `/readyz`, `/status` and `/metrics`. */
import type { FastifyInstance } from 'fastify'
import type { BridgeStatus, Readiness } from '../../mcp/ports/bridge-status.js'

/** What the endpoints report. */
export interface HealthOptions {
  /** Whether calls can be sent here, and the state of the servers. */
  state(): Promise<Readiness & { ready: boolean }>
  /** Report the state of the servers and groups too, in `/readyz`. */
  detailed: boolean
  /** What `/status` reports; undefined without that path. */
  now?: (() => Promise<BridgeStatus>) | undefined
  /** Metrics in the format of Prometheus. */
  metrics?: { readonly contentType: string; text(): Promise<string> } | undefined
}

/** Paths without authentication. */
export const OPEN: readonly string[] = ['/healthz', '/readyz']

/** A Fastify plugin that adds the endpoints. */
export async function health(app: FastifyInstance, { state, detailed, now, metrics }: HealthOptions): Promise<void> {
  // The process answers, so it is alive. A failing server is no reason to restart the bridge.
  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const { ready, status, ...states } = await state()
    reply.code(ready ? 200 : 503).header('cache-control', 'no-store')
    return reply.send(detailed ? { status, ...states } : { status })
  })
  if (now) app.get('/status', async (_request, reply) => reply.header('cache-control', 'no-store').send(await now()))
  if (metrics)
    app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
}
