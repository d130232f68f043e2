/** The connected clients of a group. Each is connected to all of its servers, also to those that are added later. */
import type { AskedClient } from '../../mcp/protocol/call.js'
import type { Member } from './member.js'

interface Connection {
  principal: string
  client: AskedClient | undefined
  /** Functions that end the connections to the servers. */
  ends: Map<Member, (() => void) | undefined>
}

export class MemberConnections {
  /** The client as a server may ask it. */
  readonly #shown: (member: Member, client: AskedClient) => AskedClient
  readonly #open = new Set<Connection>()
  #members: readonly Member[]

  constructor(members: readonly Member[], shown: (member: Member, client: AskedClient) => AskedClient) {
    this.#members = members
    this.#shown = shown
  }

  /** Connects a client until the returned function is called. */
  enter(principal: string, client: AskedClient | undefined): () => void {
    const connection: Connection = { principal, client, ends: new Map() }
    this.#open.add(connection)
    this.#connect(connection)
    return () => {
      if (!this.#open.delete(connection)) return
      for (const end of connection.ends.values()) end?.()
    }
  }

  /** Replaces the servers. */
  change(members: readonly Member[]): void {
    this.#members = members
    for (const connection of this.#open) {
      for (const [member, end] of connection.ends) {
        if (members.includes(member)) continue
        connection.ends.delete(member)
        end?.()
      }
      this.#connect(connection)
    }
  }

  #connect({ principal, client, ends }: Connection): void {
    for (const member of this.#members) {
      if (ends.has(member)) continue
      const { upstream, sleeps } = member
      ends.set(member, upstream.connected?.(principal, client && this.#shown(member, client), sleeps))
    }
  }
}
