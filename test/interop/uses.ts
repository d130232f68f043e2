/** What clients of the legacy era do with a server: cases for every client, and what there is to be seen of them. */
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { combinations, type Part } from '../support/part.js'
import type { Named } from './legacy-servers.js'
import { bridge, type Connected, clients } from './old-clients.js'

/** What a client does, by what there is to be seen of it: sentences about it. */
export type Uses = Readonly<Record<string, (t: Test, connected: Connected) => Promise<void>>>

const AT_ONCE = 8

/** Has clients on all fronts use these servers, which are given by their names, in all of these ways: a part of all combinations. */
export async function useAll(t: Test, servers: Readonly<Record<string, Named>>, uses: Uses, part: Part): Promise<void> {
  const bridged = await Promise.all(
    Object.entries(servers).map(async ([server, named]) => ({ server, bridged: await bridge(t, named) })),
  )
  t.jobs = AT_ONCE
  await Promise.all(
    combinations(bridged, clients, part).map(([{ server, bridged }, { name, revision, connect }]) =>
      t.test(`${name} uses ${server}`, { buffered: true }, async (t) => {
        const connected = await connect(t, bridged)
        t.equal(connected.revision, revision)
        for (const [what, use] of Object.entries(uses)) await t.test(what, (t) => use(t, connected))
      }),
    ),
  )
}

export const says = (text: string | RegExp) => ({ content: [{ type: 'text', text }] })

/** What belongs to calls: their progress and their answers. */
export function ofCalls(received: readonly JSONRPCMessage[]): JSONRPCMessage[] {
  return received.filter((message) => !('method' in message) || message.method === 'notifications/progress')
}

export function progressIn(message: JSONRPCMessage): unknown {
  return 'method' in message ? message.params?.['progress'] : 'result'
}

/** Params of the notifications of this kind. */
export function notified(received: readonly JSONRPCMessage[], method: string): unknown[] {
  return received.flatMap((message) => ('method' in message && message.method === method ? [message.params] : []))
}
