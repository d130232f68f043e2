/** The endpoints for liveness, readiness and metrics: `/healthz`, `/readyz` and `/metrics`. */
import type { FastifyInstance } from 'fastify'

/** What the endpoints report. */
export interface HealthOptions {
  /** Whether calls can be sent here, and the state of the servers. */
  state(): {
    ready: boolean
    status: string
    /** Whether Redis can be used, if there is one. */
    redis?: 'up' | 'down'
    /** Whether the keys of identity providers can be had, if there are any. */
    issuers?: Readonly<Record<string, object>>
    servers: Readonly<Record<string, object>>
    /** Groups of servers, if there are any. */
    groups?: Readonly<Record<string, object>>
  }
  /** Report the state of the servers and groups too. */
  detailed: boolean
  /** Metrics in the format of Prometheus. */
  metrics?: { readonly contentType: string; text(): Promise<string> } | undefined
}

/** Paths without authentication. */
export const OPEN: readonly string[] = ['/healthz', '/readyz']

/** A Fastify plugin that adds the endpoints. */
export async function health(app: FastifyInstance, { state, detailed, metrics }: HealthOptions): Promise<void> {
  // The process answers, so it is alive. A failing server is no reason to restart the bridge.
  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const { ready, status, ...states } = state()
    reply.code(ready ? 200 : 503).header('cache-control', 'no-store')
    return reply.send(detailed ? { status, ...states } : { status })
  })
  if (metrics)
    app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
}
