/**
 * Runs `mcp-bridge inspect`: one page for all bridges of this user on this machine that serve their inspector on a socket, or
 * for the events of a file.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { adminFront } from '../app/http-app.js'
import { INSPECT } from '../app/inspector-path.js'
import { printable } from '../base/texts/printable.js'
import { httpListen } from '../config/settings.js'
import { type Hub, type InspectorOptions, type InspectorParts, loadInspector, type PastSession } from './inspector.js'
import type { Program } from './program.js'
import { socketsOf } from './tail-target.js'
import { UsageError } from './usage-error.js'

export interface InspectAction {
  /** A file with events; undefined for the bridges that run. */
  file: string | undefined
  /** Whether a browser is opened, on a terminal. */
  opensBrowser: boolean
}

/** The usual address of the page. If another process has its port, any other port. */
const PAGE_ADDRESS = 'http://127.0.0.1:9092'
/** 192 random bits. */
const PAGE_TOKEN_BYTES = 24

/** Serves the page until the process ends. Throws a UsageError. */
export async function runInspect(action: InspectAction, program: Program): Promise<void> {
  const { version, output, env, platform } = program
  const listen = httpListen(PAGE_ADDRESS)
  const token = randomBytes(PAGE_TOKEN_BYTES).toString('base64url')
  const parts = await loadInspector()
  const recording = action.file === undefined ? undefined : pastSessionOf(action.file, parts)
  const hub = recording ? undefined : hubOf(program, parts)
  const options: InspectorOptions = {
    ...{ version, token, hide: [], tryToken: undefined },
    ...(hub ? ofHub(hub) : ofFile(recording as PastSession, basename(action.file ?? ''))),
  }
  const app = await adminFront({
    settings: { publicUrl: undefined, allowedHosts: [] },
    listen,
    refusals: { note: () => {} },
    inspector: {
      path: INSPECT,
      register: async (app) => {
        await app.register(parts.inspector, options)
      },
    },
  })
  const { host, port } = listen
  const url = await app.listen({ host, port }).catch(() => app.listen({ host, port: 0 }))
  await hub?.start()
  program.onSignal(() => {
    hub?.close()
    app.server.closeAllConnections()
    app.close().then(() => program.end(), program.abort)
  })
  const address = `${url}${INSPECT}#${token}`
  output.err(
    `Inspector: ${address}\n${recording ? aboutFile(recording, action.file ?? '') : aboutBridges(hub?.size ?? 0)}`,
  )
  // The address is printed, too.
  if (!output.terminal || !action.opensBrowser) return
  const { browser } = await import('../services/oauth/person/browser.js')
  browser({ env, platform })(address).catch(() => {})
}

function hubOf({ env, output, uid = -1 }: Program, { Hub }: InspectorParts): Hub {
  const folder = socketsOf(env)
  if (folder === undefined)
    throw new UsageError(
      'there is no home folder, so the sockets of bridges cannot be found: set XDG_STATE_HOME',
      'inspect',
    )
  return new Hub({
    folder,
    uid,
    onRefused: (path, why) => output.err(`mcp-bridge inspect: ${printable(path, 300)} is not used: ${why}\n`),
    onChange: (text, bridges) => output.err(`mcp-bridge inspect: ${text}; ${bridges} now\n`),
  })
}

function ofHub(hub: Hub) {
  const { merged } = hub
  const source: InspectorOptions['source'] = {
    textOf: (number) => merged.textOf(number),
    textsOf: (call) => hub.textsOf(call),
    texts: hub,
    refresh: () => hub.refresh(),
  }
  return { ring: merged.ring, bridge: hub, mayTry: true, source }
}

/** The events of a file. Throws a UsageError. */
function pastSessionOf(path: string, { MAX_PAST_FILE, pastSessionIn }: InspectorParts): PastSession {
  const shown = printable(path, 300)
  let bytes: Buffer
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw new UsageError(`${shown} is not a file`, 'inspect')
    if (stats.size > MAX_PAST_FILE)
      throw new UsageError(
        `${shown} is larger than ${MAX_PAST_FILE / 1024 / 1024} MiB: split it by lines, for example with split -C 90M`,
        'inspect',
      )
    bytes = readFileSync(path)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(
      `${shown} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      'inspect',
    )
  }
  const recording = pastSessionIn(bytes)
  if (recording.events > 0) return recording
  if (/^\s*\{\s*"log"\s*:/.test(bytes.toString('utf8', 0, 1_000)))
    throw new UsageError(
      `${shown} is an HTTP archive (HAR), which lacks what the bridge changed: export JSONL instead, and open the archive with the tools of a browser`,
      'inspect',
    )
  throw new UsageError(
    `${shown} has no events: give an export as JSONL, or what mcp-bridge tail --json has printed`,
    'inspect',
  )
}

function ofFile({ merged }: PastSession, file: string) {
  const bridge = {
    servers: () => [],
    targets: () => [],
    bodyBytes: 0,
    call: async () => undefined,
    hidden: async () => undefined,
  }
  return {
    ring: merged.ring,
    bridge,
    mayTry: false,
    source: { textOf: (number: number) => merged.textOf(number), file },
  }
}

function aboutFile({ events, broken, firstBroken }: PastSession, path: string): string {
  const left = broken === 0 ? '' : `; ${broken} lines are not events and were skipped, the first is line ${firstBroken}`
  return `${events} events of ${printable(path, 300)}${left}. Press Ctrl-C to stop.\n`
}

function aboutBridges(bridges: number): string {
  const now = bridges === 1 ? '1 bridge runs' : `${bridges} bridges run`
  return `${now} with --inspect --listen stdio as this user; others appear on the page when they start. Press Ctrl-C to stop.\n`
}
