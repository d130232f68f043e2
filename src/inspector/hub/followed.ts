/** Follows one running bridge: reads its events and the state of its servers, and forwards requests to it. */
import type { IncomingMessage } from 'node:http'
import { responseOf } from '../../app/in-memory-http.js'
import { askBridge, type RunningBridge, readFromBridge } from '../../app/running-bridges.js'
import { SseDecoder } from '../../base/rpc/sse.js'
import type { HiddenItems, TargetRequest } from '../../mcp/ports/inspected-bridge.js'
import { eventIn } from '../event.js'
import type { KeptText } from '../recorder/events.js'
import type { ServerNow } from '../server-views.js'
import type { CallView } from '../views.js'
import { type Merged, MergedSource } from './merged.js'

/** Time limit in milliseconds for the state of the servers. */
const SERVERS_WAIT = 2_000
/** Milliseconds before reconnecting to a bridge that closed the connection. */
const AGAIN = 500
/** Most servers and targets of a bridge that are shown. */
const MAX_OF_BRIDGE = 500
/** Most characters of the name of a server. */
const MAX_BRIDGE_TITLE = 100

/** A bridge's answer: its servers, and the targets of calls. */
interface ServersAnswer {
  servers?: ServerNow[]
  targets?: { name: string; kind: 'server' | 'group' }[]
  try?: { allowed: boolean; why?: string }
}

export class FollowedBridge {
  readonly #running: RunningBridge
  readonly source: MergedSource
  readonly #abort = new AbortController()
  #now: ServersAnswer = {}
  /** The identity of the bridge. */
  #id: unknown

  /** `name` is unique among all bridges that were seen. */
  constructor(running: RunningBridge, merged: Merged, name: string) {
    this.#running = running
    this.source = new MergedSource(merged, name)
  }

  /** Reads events until the bridge ends, or `stop` is called. Never rejects. */
  async follow(): Promise<void> {
    const { signal } = this.#abort
    try {
      for (;;) {
        const path = `events?payloads&after=${this.source.last}`
        const response = await askBridge(this.#running.socketPath, path, { signal })
        const isOver = response.statusCode === 200 && (await this.#read(response)) === 'other'
        response.destroy()
        if (isOver) return
        // The bridge may still run: the next connection shows it.
        await new Promise((resolve) => setTimeout(resolve, AGAIN))
      }
    } catch {
      // The bridge has ended.
    }
  }

  stop(): void {
    this.#abort.abort()
  }

  /** Records that it has ended. */
  end(): void {
    this.source.end('The bridge has ended.')
    this.source.note('the bridge has ended')
  }

  /** Asks for the state of its servers. Keeps the last one if it does not answer. */
  async refresh(): Promise<void> {
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(SERVERS_WAIT)])
    try {
      this.#now = await readFromBridge<ServersAnswer>(this.#running.socketPath, 'servers', { signal })
    } catch {
      // The next request may be answered.
    }
  }

  get servers(): ServerNow[] {
    const { servers } = this.#now
    if (!Array.isArray(servers)) return []
    return servers.slice(0, MAX_OF_BRIDGE).map((one) => ({ ...one, name: this.source.serverName(String(one.name)) }))
  }

  /** The targets of calls, by their names among all bridges. */
  get targets(): { name: string; kind: 'server' | 'group'; own: string }[] {
    const { targets } = this.#now
    if (!Array.isArray(targets)) return []
    return targets
      .slice(0, MAX_OF_BRIDGE)
      .map(({ name, kind }) => ({ name: this.source.serverName(String(name)), kind, own: String(name) }))
  }

  /** Forwards a request of MCP to a server or group of the bridge. */
  async call(own: string, { method, headers, body, signal }: TargetRequest): Promise<Response> {
    const path = `try?${new URLSearchParams({ server: own })}`
    const answer = await askBridge(this.#running.socketPath, path, { method, headers, body, signal })
    return responseOf(answer)
  }

  /** The hidden items of a server or group. */
  hidden(own: string): Promise<HiddenItems> {
    return readFromBridge<HiddenItems>(this.#running.socketPath, `catalogue?${new URLSearchParams({ server: own })}`)
  }

  /** The texts that the bridge has of one of its calls, by the numbers of their events here. */
  async textsOf(id: string): Promise<ReadonlyMap<number, KeptText>> {
    const { events } = await readFromBridge<CallView>(this.#running.socketPath, `calls/${encodeURIComponent(id)}`)
    const texts = new Map<number, KeptText>()
    for (const one of events) {
      if (one.kind !== 'message' || !one.payload) continue
      const { pictures, ...payload } = one.payload
      const seen = eventIn(JSON.stringify({ ...one, payload }))
      const number = seen && this.source.numberOf(seen.seq)
      if (number !== undefined) texts.set(number, Array.isArray(pictures) ? { ...payload, pictures } : payload)
    }
    return texts
  }

  /** Makes the bridge keep the texts of all calls for a while, or as configured. */
  async keepTexts(isAll: boolean): Promise<void> {
    const path = `payloads?keep=${isAll ? 'all' : 'configured'}`
    await readFromBridge(this.#running.socketPath, path, { method: 'POST' }).catch(() => {})
  }

  /** Records events until the connection ends, or turns out to be one with another bridge. */
  async #read(response: IncomingMessage): Promise<'other' | 'closed'> {
    const decoder = new SseDecoder()
    try {
      for await (const chunk of response as AsyncIterable<Uint8Array>)
        for (const { event, data } of decoder.push(chunk)) {
          const text = Buffer.concat(data).toString()
          if (event === 'hello') {
            const { bridge, title } = JSON.parse(text) as { bridge?: unknown; title?: unknown }
            if (this.#id !== undefined && this.#id !== bridge) return 'other'
            this.#id = bridge
            if (typeof title === 'string') this.source.title = title.slice(0, MAX_BRIDGE_TITLE)
          }
          const seen = event === 'message' ? eventIn(text) : undefined
          if (seen) this.source.add(seen)
        }
    } catch {
      // The connection broke off.
    }
    return 'closed'
  }
}
