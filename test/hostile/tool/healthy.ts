/** Healthy clients beside the hostile ones: one through the bridge, and one straight to a server, for comparison. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { envelope, headersFor } from '../../support/modern.js'
import type { Scope } from '../../support/scope.js'

/** What became of the calls of one client with one server; times in milliseconds. */
export interface Figures {
  calls: number
  p50: number
  p99: number
  max: number
}

export interface Health {
  failed: number
  errors: string[]
  targets: Figures[]
}

const script = fileURLToPath(new URL('healthy.mjs', import.meta.url))
/** Milliseconds between two calls. */
const EVERY = 20

/** Starts a client that calls these in turn. What is given back ends it, and resolves to what became of its calls. */
export function startHealthy(scope: Scope, urls: readonly string[], token?: string): () => Promise<Health> {
  const params = { name: 'echo', arguments: { text: 'healthy' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } })
  const headers = { ...headersFor('tools/call', params), ...(token && { authorization: `Bearer ${token}` }) }
  const targets = urls.map((url) => ({ url, headers, body, expect: 'healthy' }))
  const child = spawn(execPath, [script, JSON.stringify({ targets, every: EVERY })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  scope.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  return async () => {
    child.stdin.end()
    await once(child, 'close')
    return JSON.parse(said) as Health
  }
}
