/** A modern client on a pipe: it writes lines and reads what comes back, while the bridge runs inside the test. */
import { PassThrough } from 'node:stream'
import type { Test } from 'tap'
import type { BridgeContext } from '../../src/app/context.js'
import { createBridge, type Started } from './bridge.js'
import { until } from './eventually.js'
import { envelope } from './modern.js'

type Json = Record<string, unknown>

export interface Pipe extends Omit<Started, 'url'> {
  /** Writes a line as it is. */
  line(text: string | Uint8Array): void
  /** Sends a well-formed request and resolves to the message that answers it. */
  call(method: string, params?: Json, options?: { id?: unknown; meta?: Json }): Promise<Json>
  /** Everything that came out, in order, parsed; a line that is no JSON makes this throw. */
  messages(): Json[]
  /** The same, to the letter. */
  lines(): string[]
  /** Ends the input, and resolves when the bridge has let go of the pipe. */
  end(): Promise<void>
}

export function openPipe(t: Test, server: object, settings: object = {}, more: Partial<BridgeContext> = {}): Pipe {
  const { bridge, log } = createBridge(t, server, settings, more)
  const input = new PassThrough()
  const output = new PassThrough()
  let written = ''
  output.setEncoding('utf8').on('data', (chunk: string) => {
    written += chunk
  })
  const served = bridge.pipe({ input, output })
  const lines = () => written.split('\n').filter(Boolean)
  const messages = () => lines().map((line) => JSON.parse(line) as Json)
  const line = (text: string | Uint8Array) => {
    input.write(text)
    input.write('\n')
  }
  const call = async (method: string, params: Json = {}, { id = 1, meta = {} }: { id?: unknown; meta?: Json } = {}) => {
    const before = messages().length
    line(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope(meta) } }))
    const answer = () =>
      messages()
        .slice(before)
        .find((message) => message['id'] === id && !('method' in message))
    await until(() => answer() !== undefined, `an answer to ${method}`)
    return answer() as Json
  }
  const end = () => {
    input.end()
    return served
  }
  t.teardown(() => input.end())
  return { bridge, log, line, call, messages, lines, end }
}
