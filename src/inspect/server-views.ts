/** What events add up to of servers: their eras, processes and what the bridge itself has sent to them. */
import { isFailure, type Seen, type Side } from '../ports/seen.js'
import type { SessionCounts } from './open-sessions.js'

/** Most of each that are kept. The oldest leave, but of servers the first stay. */
export const KEPT_OF_SERVERS = { servers: 200, stderr: 20, messages: 20, processes: 100 }

type Of<K extends Seen['kind']> = Extract<Seen, { kind: K }>

/** What is known about a server. */
export interface ServerView {
  name: string
  era: string
  revision?: string | undefined
  transport?: string | undefined
  /** The server as the last call of a modern client, or the last call to a modern server, has met it. */
  side?: Side | undefined
  /** The evidence for its era, and when it was found. */
  why?: string | undefined
  at?: number | undefined
  ms?: number | undefined
  /** Its processes that run, as far as they are known, and how many run. */
  pids: number[]
  running: number
  starts: number
  calls: number
  failed: number
  /** Messages that belong to no call: the last probe of its era, the last handshake, and the newest others. */
  messages: Of<'message'>[]
  /** The last lines that its process wrote to stderr. */
  stderr: string[]
}

/** What the bridge knows about one of its servers now. */
export interface ServerNow {
  name: string
  state: string
  era?: string | undefined
  revision?: string | undefined
  why?: string | undefined
  calls: number
  parked: number
  /** Its open sessions. */
  sessions?: SessionCounts | undefined
  /**
   * After a failure, the server is not called for a while: how many failures in a row there were, and the milliseconds
   * until it is called again. Undefined if it is called.
   */
  pause?: { failures?: number | undefined; ms: number } | undefined
  /** The names of its tools, if it has listed them. */
  tools?: readonly string[] | undefined
  /** Messages that belong to no call, with their texts. */
  messages?: readonly Of<'message'>[] | undefined
}

/** What the bridge itself sends to find out the era of a server, and to open a session with it. */
const OPENING: readonly (string | undefined)[] = ['server/discover', 'initialize', 'notifications/initialized']

/** The last message of this method that was sent to a server, and the answer to it, if there is one. */
function lastOf(messages: readonly Of<'message'>[], method: string | undefined): Of<'message'>[] {
  const at = messages.findLastIndex((message) => message.dir === 'out' && message.method === method)
  const sent = messages[at]
  if (!sent) return []
  const isAnswer = ({ dir, form, id }: Of<'message'>) =>
    dir === 'in' && (form === 'result' || form === 'error') && id === sent.id
  const answer = messages.slice(at).find(isAnswer)
  return answer ? [sent, answer] : [sent]
}

/** The request with which the bridge opens a server now, if it was sent after this time and is not answered so far. */
export function openingSince({ messages }: ServerView, at: number): Of<'message'> | undefined {
  // The newest one counts: those before it may never be answered.
  const sent = messages.findLast(
    ({ dir, form, method }) => dir === 'out' && form === 'request' && OPENING.includes(method),
  )
  return sent && sent.at >= at && lastOf(messages, sent.method).length === 1 ? sent : undefined
}

/** The servers that events are about. */
export class ServerViews {
  readonly byName = new Map<string, ServerView>()

  /** The server with this name. One that is not listed is forgotten. */
  of(name = ''): ServerView {
    const known = this.byName.get(name)
    if (known) return known
    const server: ServerView = {
      name,
      era: 'unknown',
      starts: 0,
      calls: 0,
      failed: 0,
      pids: [],
      running: 0,
      messages: [],
      stderr: [],
    }
    // An event without a server belongs to none that is listed.
    if (name !== '' && this.byName.size < KEPT_OF_SERVERS.servers) this.byName.set(name, server)
    return server
  }

  verdict({ server, era, revision, transport, why, at, ms }: Of<'verdict'>): void {
    Object.assign(this.of(server), { era, revision, transport, why, at, ms })
  }

  /** A message that belongs to no call. */
  message(seen: Of<'message'>): void {
    const { messages } = this.of(seen.server)
    messages.push(seen)
    const opening = new Set(OPENING.flatMap((method) => lastOf(messages, method)))
    const [oldest, ...others] = messages.filter((message) => !opening.has(message))
    if (oldest && others.length >= KEPT_OF_SERVERS.messages) messages.splice(messages.indexOf(oldest), 1)
  }

  child({ server: name, what, pid, running, line }: Of<'child'>): void {
    const server = this.of(name)
    if (what === 'stderr') {
      server.stderr.push(line ?? '')
      if (server.stderr.length > KEPT_OF_SERVERS.stderr) server.stderr.shift()
      return
    }
    if (what === 'ended') server.pids = server.pids.filter((one) => one !== pid)
    else {
      server.starts++
      if (pid !== undefined) server.pids = [...server.pids, pid].slice(-KEPT_OF_SERVERS.processes)
    }
    server.running = running ?? server.pids.length
  }

  /** The process of a server, if it has only one. */
  pidOf(name: string | undefined): number | undefined {
    const { pids, running } = this.of(name)
    return running === 1 && pids.length === 1 ? pids[0] : undefined
  }

  /** The server as a call meets it that does not say so; undefined if it is not known. */
  sideOf(name: string | undefined): Side | undefined {
    const { side, era, revision, transport } = this.of(name)
    if (side && (era === 'unknown' || era === side.era)) return side
    if (era !== 'modern' && era !== 'legacy') return undefined
    // A legacy server may have agreed on another revision with another client.
    return { era, revision: era === 'modern' ? revision : undefined, transport: transport as Side['transport'] }
  }

  /** A call has begun or ended. `upstream` is its server, as far as it is known. */
  called({ server: name, outcome, client }: Of<'call'>, upstream: Side | undefined, isNew: boolean): void {
    const server = this.of(name)
    if (isNew) server.calls++
    // A legacy client agrees on a revision with a legacy server for itself.
    if (outcome !== undefined && upstream && (client.era === 'modern' || upstream.era === 'modern'))
      server.side = upstream
    // A verdict on a legacy server has no revision yet: `initialize` says it.
    if (upstream?.revision !== undefined && (server.era === 'unknown' || server.era === upstream.era))
      Object.assign(server, { era: upstream.era, revision: upstream.revision })
    if (isFailure(outcome)) server.failed++
  }
}
