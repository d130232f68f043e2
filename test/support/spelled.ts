/** A legacy server that writes its messages in its own way, and clients in front of it: one for each lane. */
import type { Test } from 'tap'
import { startBridge } from './bridge.js'
import { until } from './eventually.js'
import { LegacyClient } from './legacy-client.js'
import { LegacyHttp } from './legacy-http.js'
import { LegacySse } from './legacy-sse.js'
import { legacyStdio } from './legacy-stdio.js'
import { call } from './modern.js'
import { openPipe, type Pipe } from './pipe.js'
import { SseClient } from './sse-client.js'

type Json = Record<string, unknown>

/** A pattern, and what is written in place of it. */
export type Spelling = readonly [pattern: string, text: string]

export interface SpelledLane {
  name: string
  /** Sends a request, and resolves to the message that answers it. */
  ask(method: string, params?: Json): Promise<Json>
}

/**
 * Lanes to a server that writes its messages with these replacements. The events of a stream pass unchanged, so
 * some replacements cannot be read by the client of the test there.
 */
export async function spelledLanes(
  t: Test,
  replace: readonly Spelling[],
  except?: 'not within unchanged events',
): Promise<SpelledLane[]> {
  const spell = (text: string) =>
    replace.reduce((spelled, [pattern, other]) => spelled.replace(new RegExp(pattern, 'g'), other), text)
  const stdio = legacyStdio(t, { replace }).server
  const json = { url: (await LegacyHttp.start(t, { spell })).url }
  const events = { url: (await LegacyHttp.start(t, { spell, streams: true })).url }
  const sse = { url: (await LegacySse.start(t, { spell })).url, transport: 'sse' }
  const modern = async (name: string, server: object): Promise<SpelledLane> => {
    const { url } = await startBridge(t, server)
    return { name: `modern client, ${name}`, ask: async (method, params) => (await call(url, method, params)).message }
  }
  const direct = async (name: string, server: object): Promise<SpelledLane> => {
    const { url } = await startBridge(t, server)
    const client = await LegacyClient.open(url)
    return { name, ask: async (method, params) => (await client.request(method, params)).message }
  }
  const piped = async (name: string, server: object): Promise<SpelledLane> => {
    const pipe = openPipe(t, server)
    await shakeHands(pipe)
    return { name, ask: (method, params) => askOn(pipe, method, params) }
  }
  const viaSse = async (name: string, server: object): Promise<SpelledLane> => {
    const { url } = await startBridge(t, server)
    const client = await SseClient.open(url, '2025-11-25')
    return { name, ask: (method, params) => client.request(method, params) }
  }
  return [
    await modern('program', stdio),
    await modern('JSON over HTTP', json),
    await modern('events over HTTP', events),
    await modern('HTTP+SSE', sse),
    await direct('legacy client on HTTP, JSON over HTTP', json),
    ...(except ? [] : [await direct('legacy client on HTTP, events over HTTP', events)]),
    await direct('legacy client on HTTP, program', stdio),
    await piped('legacy client on stdio, program', stdio),
    await piped('legacy client on stdio, JSON over HTTP', json),
    await viaSse('legacy client over HTTP+SSE, events over HTTP', events),
  ]
}

/** Opens the session of a legacy client on a pipe. */
export async function shakeHands(pipe: Pipe, revision = '2025-11-25'): Promise<Json> {
  const clientInfo = { name: 'old', version: '1' }
  const opened = await askOn(pipe, 'initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
  pipe.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  return opened
}

let asked = 0
/** Sends a request on a pipe, and resolves to the message that answers it. */
export async function askOn(pipe: Pipe, method: string, params: Json = {}): Promise<Json> {
  const before = pipe.messages().length
  const id = `${method} ${++asked}`
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  const answer = () =>
    pipe
      .messages()
      .slice(before)
      .find((message) => message['id'] === id && !('method' in message))
  await until(() => answer() !== undefined, `an answer to ${method}`)
  return answer() as Json
}
