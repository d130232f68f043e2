/** Clients of each era and transport that call a tool of a server over HTTP, through a bridge of their own. */
import type { Test } from 'tap'
import { startBridge } from './bridge.js'
import { LegacyClient } from './legacy-client.js'
import { call } from './modern.js'
import { openPipe } from './pipe.js'
import { askOn, shakeHands } from './spelled.js'
import { SseClient } from './sse-client.js'

type Json = Record<string, unknown>

/** Connects to the server at an address. The returned function sends `tools/call`, and gives the answer. */
export type Caller = (t: Test, url: string) => Promise<(params: object) => Promise<Json>>

export const callers = {
  modern: async (t, server) => {
    const { url } = await startBridge(t, { url: server })
    return async (params) => (await call(url, 'tools/call', params as Json)).message
  },
  'legacy, over HTTP': async (t, server) => {
    const { url } = await startBridge(t, { url: server })
    const client = await LegacyClient.open(url)
    return async (params) => (await client.request('tools/call', params as Json)).message
  },
  'legacy, on stdio': async (t, server) => {
    const pipe = openPipe(t, { url: server })
    await shakeHands(pipe)
    return (params) => askOn(pipe, 'tools/call', params as Json)
  },
  'legacy, over HTTP+SSE': async (t, server) => {
    const { url } = await startBridge(t, { url: server })
    const client = await SseClient.open(url, '2025-11-25')
    return (params) => client.request('tools/call', params as Json)
  },
} satisfies Record<string, Caller>
