/** Builds servers from events: eras, processes, and messages outside calls. */

import type { Simplified } from '../base/texts/simplified.js'
import type { ProcessNow } from '../mcp/ports/bridge-status.js'
import { isFailure } from '../mcp/ports/outcome.js'
import type { ServerStatus } from '../mcp/ports/server-status.js'
import type { CallView } from './call-views.js'
import type { SessionCounts } from './open-sessions.js'
import { isAnswer, type RecordedOf, type Side } from './recorder/events.js'

export type { ProcessNow }

/** Most stored entries of each kind. The oldest are dropped; of servers, the first ones stay. */
export const KEPT_OF_SERVERS = { servers: 200, stderr: 20, messages: 20, processes: 100 }

/** A call: its server or group, the servers of the group, and what is known about the one that it is for. */
type CallOf = Pick<CallView, 'server' | 'members' | 'upstream'>

/** The current state of a server: from the bridge, and from events. */
export interface ServerNow extends ServerStatus {
  /** Its open sessions. */
  sessions?: SessionCounts | undefined
  /** The names of its tools, if listed. */
  tools?: readonly string[] | undefined
  /** The first words of their descriptions, by name. */
  descriptions?: Readonly<Record<string, string>> | undefined
  /** Messages outside of calls, with their texts. */
  messages?: readonly RecordedOf<'message'>[] | undefined
}

/** The known facts about a server. */
export interface ServerView {
  name: string
  /** It is a group: it has no era, process or state of its own. */
  isGroup?: true
  /** What portable schemas make of the tools of a group. */
  simplified?: readonly Simplified[] | undefined
  /** The servers of a group that have got calls of it. */
  members?: string[] | undefined
  era: string
  revision?: string | undefined
  transport?: string | undefined
  /** The server as seen by the last call from a modern client or to a modern server. */
  side?: Side | undefined
  /** The evidence for its era, and when it was found. */
  why?: string | undefined
  at?: number | undefined
  ms?: number | undefined
  /** Its known running processes, and the number of running ones. */
  pids: number[]
  running: number
  starts: number
  calls: number
  failed: number
  /** Messages outside of calls: the last probe of its era, the last handshake, and the newest others. */
  messages: RecordedOf<'message'>[]
  /** The last lines that its process wrote to stderr. */
  stderr: string[]
  /** When it wrote them, in milliseconds since 1970. */
  stderrAt: number[]
}

/** Requests of the bridge itself: to detect the era of a server, and to open a session. */
export const OPENING: readonly (string | undefined)[] = ['server/discover', 'initialize', 'notifications/initialized']

/** The last message of this method sent to a server, and its answer, if any. */
function lastOf(messages: readonly RecordedOf<'message'>[], method: string | undefined): RecordedOf<'message'>[] {
  const at = messages.findLastIndex((message) => message.dir === 'out' && message.method === method)
  const sent = messages[at]
  if (!sent) return []
  const answer = messages.slice(at).find((one) => one.dir === 'in' && isAnswer(one) && one.id === sent.id)
  return answer ? [sent, answer] : [sent]
}

/** The unanswered request with which the bridge opens a server, if it was sent after this time. */
export function openingSince({ messages }: ServerView, at: number): RecordedOf<'message'> | undefined {
  // The newest one counts: earlier ones may never be answered.
  const sent = messages.findLast(
    ({ dir, form, method }) => dir === 'out' && form === 'request' && OPENING.includes(method),
  )
  return sent && sent.at >= at && lastOf(messages, sent.method).length === 1 ? sent : undefined
}

/** The servers that events are about. */
export class ServerViews {
  readonly byName = new Map<string, ServerView>()

  /** The server with this name. Beyond KEPT_OF_SERVERS, a new one is returned without being stored. */
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
      stderrAt: [],
    }
    // An event without a server belongs to no listed one.
    if (name !== '' && this.byName.size < KEPT_OF_SERVERS.servers) this.byName.set(name, server)
    return server
  }

  verdict({ server, era, revision, transport, why, at, ms }: RecordedOf<'verdict'>): void {
    Object.assign(this.of(server), { era, revision, transport, why, at, ms })
  }

  /** A message outside of calls. */
  message(seen: RecordedOf<'message'>): void {
    const { messages } = this.of(seen.server)
    messages.push(seen)
    const opening = new Set(OPENING.flatMap((method) => lastOf(messages, method)))
    const [oldest, ...others] = messages.filter((message) => !opening.has(message))
    if (oldest && others.length >= KEPT_OF_SERVERS.messages) messages.splice(messages.indexOf(oldest), 1)
  }

  child({ server: name, what, pid, running, line, at }: RecordedOf<'child'>): void {
    const server = this.of(name)
    if (what === 'stderr') {
      server.stderr.push(line ?? '')
      server.stderrAt.push(at)
      if (server.stderr.length <= KEPT_OF_SERVERS.stderr) return
      server.stderr.shift()
      server.stderrAt.shift()
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

  /** The era and revision of the server for a call that does not have them; undefined if unknown. */
  sideOf(name: string | undefined): Side | undefined {
    const { side, era, revision, transport } = this.of(name)
    if (side && (era === 'unknown' || era === side.era)) return side
    if (era !== 'modern' && era !== 'legacy') return undefined
    // A legacy server may have negotiated another revision with another client.
    return { era, revision: era === 'modern' ? revision : undefined, transport: transport as Side['transport'] }
  }

  /** A server has got one more call. */
  counted(name: string): void {
    this.of(name).calls++
  }

  /** It is a group. */
  group(name: string): ServerView & { members: string[] } {
    const view = this.of(name)
    view.isGroup = true
    view.members ??= []
    return view as ServerView & { members: string[] }
  }

  /** A group has sent a call to this server. */
  joined(group: string, member: string): void {
    const { members } = this.group(group)
    if (!members.includes(member) && members.length < KEPT_OF_SERVERS.servers) members.push(member)
  }

  /** A call has started or ended. */
  called({ outcome, client }: RecordedOf<'call'>, { server: name, members, upstream }: CallOf): void {
    if (isFailure(outcome)) for (const one of [name, ...members]) this.of(one).failed++
    const [only = name, ...others] = members
    const server = this.of(only)
    // A call of several servers says nothing about one of them.
    if (server.isGroup || others.length > 0) return
    // A legacy client negotiates its own revision with a legacy server.
    if (outcome !== undefined && upstream && (client.era === 'modern' || upstream.era === 'modern'))
      server.side = upstream
    // The revision of a legacy server is only known after `initialize`.
    if (upstream?.revision !== undefined && (server.era === 'unknown' || server.era === upstream.era))
      Object.assign(server, { era: upstream.era, revision: upstream.revision })
  }
}
