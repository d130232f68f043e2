/** Modern clients that listen to what changes. */
import { type EventStream, openStream } from './events.js'
import { until } from './eventually.js'
import { CAPABILITIES, envelope, headersFor } from './modern.js'

type Json = Record<string, unknown>

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
export const ALL_LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

export interface ListenOptions {
  id?: unknown
  capabilities?: object
  headers?: Record<string, string>
}

/** The text of a `subscriptions/listen`. */
export function listenText(filter: unknown, { id = 1, capabilities = {} }: ListenOptions = {}): string {
  const params = { notifications: filter, _meta: envelope({ [CAPABILITIES]: capabilities }) }
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })
}

export function listen(url: string, filter: unknown, options: ListenOptions = {}): Promise<EventStream> {
  const headers = { ...headersFor('subscriptions/listen'), ...options.headers }
  return openStream('POST', url, headers, listenText(filter, options))
}

/** What has come on a stream after the acknowledgement, without what says which subscription it belongs to. */
export function told(stream: { messages: Json[] }): { method: unknown; params: Json | undefined }[] {
  return stream.messages
    .filter(({ method }) => method !== undefined && method !== ACKNOWLEDGED)
    .map(({ method, params }) => {
      const { _meta, ...rest } = (params ?? {}) as Json
      return { method, params: Object.keys(rest).length > 0 ? rest : undefined }
    })
}

/** Waits until so many changes have been told. */
export async function hears(stream: EventStream, count: number): Promise<ReturnType<typeof told>> {
  await until(() => told(stream).length >= count, `${count} changes (${stream.text})`)
  return told(stream)
}

export const changed = (list: 'tools' | 'prompts' | 'resources' | 'events') => ({
  method: `notifications/${list}/list_changed`,
  params: undefined,
})
export const updated = (uri: string) => ({ method: 'notifications/resources/updated', params: { uri } })
