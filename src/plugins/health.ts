/** Says how the bridge is doing: to what keeps it running, to what sends it traffic, and to what counts. */
import type { FastifyInstance } from 'fastify'

export interface HealthOptions {
  /** Whether calls can be sent here, and how things stand in detail. */
  state(): { ready: boolean; status: string; servers: Readonly<Record<string, object>> }
  /** Tell more than whether it is ready. */
  detailed: boolean
  /** What has been counted, in the format of Prometheus. */
  metrics?: { readonly contentType: string; text(): Promise<string> } | undefined
}

/** Paths that anybody may ask for. */
export const OPEN: readonly string[] = ['/healthz', '/readyz']

export async function health(app: FastifyInstance, { state, detailed, metrics }: HealthOptions): Promise<void> {
  // The process answers, so it lives: what is the matter with a server is no reason to start the bridge again.
  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const { ready, status, servers } = state()
    reply.code(ready ? 200 : 503).header('cache-control', 'no-store')
    return reply.send(detailed ? { status, servers } : { status })
  })
  if (metrics)
    app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
}
