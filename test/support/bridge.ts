/** A bridge inside the test, with its log in memory. */
import { readFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import type { Test } from 'tap'
import { Bridge } from '../../src/app/bridge.js'
import type { BridgeContext } from '../../src/app/context.js'
import { replicasOf } from '../../src/app/replicas.js'
import { parseListen, parseSettings, type Settings } from '../../src/config/settings.js'
import { Desk } from '../../src/services/oauth/page/desk.js'
import { startAudit } from '../../src/services/telemetry/audit-log.js'
import { watchForSecrets } from './secrets.js'

export interface Started {
  url: string
  bridge: Bridge
  /** Every line that was logged. */
  log: Record<string, unknown>[]
}

/** What a test leaves open is nobody's loss. */
const QUICK = { drainTimeout: 100 }

/** The settings of a bridge inside a test, also for a reload. */
export function settingsOf(settings: object): Settings {
  return parseSettings(
    {
      listen: 'http://127.0.0.1:0/mcp',
      ...settings,
      timeouts: { ...QUICK, ...('timeouts' in settings ? (settings.timeouts as object) : {}) },
    },
    { env: process.env, read: (path) => readFileSync(path, 'utf8') },
  )
}

/** Builds a bridge in front of one server, at debug level. It is closed with the test. */
export function createBridge(
  t: Test,
  server: object,
  settings: object = {},
  more: Partial<BridgeContext> = {},
): Omit<Started, 'url'> {
  const log: Record<string, unknown>[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      log.push(JSON.parse(String(chunk)) as Record<string, unknown>)
      done()
    },
  })
  // The inspector has a fixed port by default, which a connection of an earlier test may still have.
  const own = more.inspector && { admin: 'http://127.0.0.1:0' }
  const parsed = settingsOf({ mcpServers: { test: server }, ...own, ...settings })
  const logger = pino({ level: 'debug' }, sink)
  const replicas = replicasOf(parsed, logger)
  const services = { startAudit, Desk }
  const bridge = new Bridge(parsed, { log: logger, version: '0.0.0', env: process.env, replicas, services, ...more })
  t.teardown(() => bridge.close())
  watchForSecrets(t, 'the log of a bridge', () => JSON.stringify(log))
  return { bridge, log }
}

/** The same, listening on a port of its own. */
export async function startBridge(
  t: Test,
  server: object,
  settings: object = {},
  more: Partial<BridgeContext> = {},
): Promise<Started> {
  const { bridge, log } = createBridge(t, server, settings, more)
  const listen = parseListen('http://127.0.0.1:0/mcp')
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  const urls = await bridge.listen(listen)
  return { url: urls.values().next().value as string, bridge, log }
}
