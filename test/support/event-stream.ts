/** An open `events/stream`, read while it goes on. */
import type { Test } from 'tap'
import { until } from './eventually.js'
import { type CallOptions, envelope, headersFor } from './modern.js'

type Json = Record<string, unknown>

/** Opens one; it is closed with the test. */
export async function opened(t: Test, url: string, params: Json, { id = 1, headers = {} }: CallOptions = {}) {
  const end = new AbortController()
  t.teardown(() => end.abort())
  const method = 'events/stream'
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headersFor(method, params), ...(headers as Record<string, string>) },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope() } }),
    signal: end.signal,
  })
  let text = ''
  let ended = false
  const decoder = new TextDecoder()
  const reading = async () => {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>)
      text += decoder.decode(chunk, { stream: true })
  }
  reading()
    .catch(() => {})
    .finally(() => {
      ended = true
    })
  const come = (): Json[] =>
    text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Json] : []))
  return {
    status: response.status,
    close: () => end.abort(),
    /** Everything that has come. */
    come,
    /** The first messages, once so many have come. */
    messages: async (count: number): Promise<Json[]> => {
      await until(() => come().length >= count || ended, 'the messages of a stream')
      return come().slice(0, count)
    },
    ended: () => until(() => ended, 'the end of a stream'),
  }
}
