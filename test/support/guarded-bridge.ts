/** A bridge whose clients have to sign in, in front of a server with two tools. */
import type { Test } from 'tap'
import type { Bridge } from '../../src/app/bridge.js'
import { parseListen } from '../../src/config/settings.js'
import { createBridge } from './bridge.js'
import { freePort } from './free-port.js'
import { startSdkV1 } from './sdk-v1.js'

type Json = Record<string, unknown>

/** What a server was sent, to the byte. */
export interface Behind {
  url: string
  log: Json[]
  seen: string[]
  bridge: Bridge
  /** Its settings, for a reload. */
  settings: Json
}

export const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })

/** Starts it. `settings` are those of the bridge, `entry` those of each server, which is the same under several `names`. */
export async function startGuarded(
  t: Test,
  settings: Json,
  entry: Json = {},
  names: readonly string[] = ['test'],
): Promise<Behind> {
  const seen: string[] = []
  const server = await startSdkV1(t, (one) => {
    one.registerTool('read', { description: 'Reads.', annotations: { readOnlyHint: true } }, (extra) => {
      seen.push(JSON.stringify(extra))
      return text('read')
    })
    one.registerTool('write', { description: 'Writes.' }, (extra) => {
      seen.push(JSON.stringify(extra))
      return text('written')
    })
  })
  const origin = `http://127.0.0.1:${await freePort()}`
  const servers = Object.fromEntries(names.map((name) => [name, { url: server, ...entry }]))
  const all = { mcpServers: servers, publicUrl: origin, ...settings }
  const { bridge, log } = createBridge(t, servers['test'] as Json, all)
  const listen = parseListen(`${origin}/mcp`)
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  await bridge.listen(listen)
  return { url: `${origin}/mcp`, log, seen, bridge, settings: all }
}
