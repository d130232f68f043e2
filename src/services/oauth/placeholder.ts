/** The placeholder for a server until the sign-in: its description, its empty lists, and one tool that signs in. */

import { pause } from '../../base/time/pause.js'
import { OneAcknowledgement } from '../../mcp/listening/keep-open.js'
import { SIGN_IN_TOOL } from '../../mcp/protocol/account.js'
import type { Call, Final, Handler } from '../../mcp/protocol/call.js'
import { MODERN } from '../../mcp/protocol/eras.js'
import { LISTEN, LISTS } from '../../mcp/protocol/methods.js'
import { acknowledgement, CHANGING_LISTS, filterIn, NOTHING } from '../../mcp/protocol/subscriptions.js'

/** The server that the placeholder stands for. */
export interface PlaceholderServer {
  name: string
  /** The argument of `mcp-bridge login`. */
  loginName: string
  /** The address where the principal signs in; undefined if a browser opens on this machine. */
  page: string | undefined
}

/** Milliseconds between checks for a sign-in, for open subscriptions. */
const LOOK_EVERY = 500

/** Whether the placeholder answers a method. */
export function isOfPlaceholder(method: string): boolean {
  return method === 'server/discover' || method === LISTEN || LISTS.has(method)
}

/** The result of a method; undefined for methods without one. */
export function placeholderResult(method: string, { name, loginName, page }: PlaceholderServer): object | undefined {
  const other = page === undefined ? `run "mcp-bridge login ${loginName}" in a terminal` : `open ${page}`
  const how = `Call the tool ${SIGN_IN_TOOL}, or ${other}.`
  const where = page === undefined ? 'A browser window opens on this machine.' : `It gives the address of a page.`
  if (method === 'server/discover')
    return {
      supportedVersions: MODERN,
      capabilities: Object.fromEntries(CHANGING_LISTS.map(({ capability }) => [capability, { listChanged: true }])),
      instructions: `The server "${name}" requires a sign-in before it can be used. ${how} Its own tools are available after that.`,
    }
  if (method === 'tools/list')
    return {
      tools: [
        {
          name: SIGN_IN_TOOL,
          title: `Sign in to ${name}`,
          description: `Signs in to the server "${name}". Its tools can be used after that. ${where}`,
          inputSchema: { type: 'object', properties: {} },
        },
      ],
    }
  const list = LISTS.get(method)
  return list && { [list.key]: [] }
}

/**
 * Answers a subscription while the principal has the placeholder (`waits`). After the sign-in it reports that all lists have
 * changed, and continues at the server.
 */
export async function listenToPlaceholder(call: Call, next: Handler, waits: () => Promise<boolean>): Promise<Final> {
  const { signal } = call
  const honoured = { ...NOTHING, lists: filterIn(call.params).lists }
  const client = new OneAcknowledgement(call.notify)
  await client.notify(acknowledgement(honoured))
  while (await waits()) {
    await pause(LOOK_EVERY, signal)
    signal.throwIfAborted()
  }
  await client.missed()
  return next({ ...call, notify: client.notify })
}
