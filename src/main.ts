#!/usr/bin/env node
/** The process: arguments, signals, exit codes. The only file that touches `process`. */
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Bridge, type Surroundings } from './app.js'
import { writableByGroup } from './cli/writable.js'
import { type Command, HELP, parseCommand, UsageError } from './cli.js'
import { ConfigError, parseListen, type Settings, unknownKeys } from './config.js'
import type { Discovery } from './found/parts.js'
import type { FoundServers } from './found/servers.js'
import { describe, inspect } from './inspect.js'
import { createLog } from './log.js'
import type { Mount } from './mount.js'
import { Fault } from './protocol/fault.js'
import { startTracing, type Tracing } from './telemetry/tracing.js'
import { ChannelError } from './upstream/channel.js'
import type { Verdict } from './upstream/detection.js'

/** Milliseconds between looks at the files of the configuration. */
const FILE_CHECK = 1_000
const EXIT = { ok: 0, failed: 1, usage: 2, config: 78 }
/** Milliseconds for which the bridge waits for what is to be found before it begins without it. */
const FINDING = 10_000
const ELSEWHERE = { env: process.env, read: (path: string) => readFileSync(path, 'utf8') }
const OUTPUT = {
  out: (text: string) => process.stdout.write(text),
  err: (text: string) => process.stderr.write(text),
  terminal: terminal(),
}
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

try {
  await run(parseCommand(process.argv.slice(2), process.env))
} catch (error) {
  process.exitCode = complain(error)
}

async function run(command: Command): Promise<void> {
  switch (command.kind) {
    case 'help':
      process.stdout.write(HELP)
      return
    case 'version':
      process.stdout.write(`${version}\n`)
      return
    case 'check': {
      const ignored = unknownKeys(command.settings).map(({ path, message }) => `  ${path} ${message}\n`)
      process.stdout.write(`${command.file} is right.\n${ignored.join('')}`)
      return
    }
    case 'probe':
      return probe(command.settings, command.json)
    case 'discover': {
      const { settings, json } = command
      const { runDiscover } = await import('./cli/discover.js')
      const usable = await runDiscover(await discovering(), settings, OUTPUT, json)
      process.exitCode = usable ? EXIT.ok : EXIT.failed
      return
    }
    case 'trust': {
      const { action, trustStore } = command
      const { runTrust } = await import('./cli/trust.js')
      const context = { trustStore, env: process.env, discovering: await discovering(), output: OUTPUT }
      process.exitCode = (await runTrust(action, context)) ? EXIT.ok : EXIT.failed
      return
    }
    case 'run':
      return serve(command.settings, command.files)
  }
}

/** What makes what finds servers, and meets them. */
async function discovering(): Promise<(settings: Settings) => Discovery> {
  const { Discovery } = await import('./found/parts.js')
  const log = await createLog({ level: 'silent', format: 'auto' }, false)
  return (settings) =>
    new Discovery({ settings, surroundings: { log, version, env: process.env }, elsewhere: ELSEWHERE })
}

async function probe(settings: Settings, json: boolean): Promise<void> {
  const log = await createLog(
    { ...settings.log, level: settings.log.level === 'info' ? 'error' : settings.log.level },
    terminal(),
  )
  const bridge = new Bridge(settings, { log, version, env: process.env })
  if (terminal() && !json) process.stderr.write(`Asking ${bridge.server.target} …\n`)
  try {
    const inspection = await inspect(bridge.server)
    process.stdout.write(`${json ? JSON.stringify(inspection, null, 2) : describe(bridge.server.target, inspection)}\n`)
  } finally {
    await bridge.close()
  }
}

async function serve(settings: Settings, files: readonly string[]): Promise<void> {
  const log = await createLog(settings.log, terminal())
  for (const { path, message } of unknownKeys(settings)) log.warn({ path }, message)
  warnOfWriters(log, files)
  const listen = parseListen(settings.listen)
  // On a pipe there is nobody who could ask for them.
  const counted = settings.metrics && listen.kind === 'http'
  // Loaded only where it is used, as what draws up traces is.
  const metrics = counted ? new (await import('./telemetry/metrics.js')).Metrics({ version }) : undefined
  const tracing = await startTracing(process.env, { version, log })
  const surroundings = { log, version, env: process.env, metrics, tracer: tracing?.tracer }
  const found = await finding(settings, surroundings, listen.kind === 'stdio')
  const bridge = new Bridge(found?.with(settings) ?? settings, { ...surroundings, lead: found?.lead })
  const stop = stopper(bridge, tracing, found)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info({ signal }, 'stopping')
      stop().catch(() => process.exit(EXIT.failed))
    })
  }
  try {
    if (listen.kind === 'stdio') {
      const ready = bridge.server.warmUp()
      ready.catch(() => {})
      const piped = bridge.pipe({ input: process.stdin, output: process.stdout })
      await Promise.race([ready.then(() => piped), piped])
      return await stop()
    }
    announce(log, settings, bridge, await bridge.listen(listen))
    const current = { settings }
    found?.follow(() => reload(log, bridge, found.with(current.settings)))
    if (files.length > 0) followChanges(log, bridge, files, { found, current })
    await bridge.warmUp((mount, verdict) => report(log, bridge, mount, verdict))
  } catch (error) {
    process.exitCode = complain(error)
    await stop(true)
  }
}

/**
 * Says what has become of a server when the bridge started. A program that cannot be started is a mistake of whoever has
 * named it, if there is no other server; what is reached by an address may only be late.
 */
function report(log: Logger, { mounts }: Bridge, { name, server }: Mount, verdict: Verdict | Fault | undefined): void {
  const named = mounts.size > 1 ? { server: name } : {}
  if (verdict instanceof Fault) {
    if (mounts.size === 1 && server.isProgram) throw verdict
    const { message: why } = verdict
    log.warn({ server: name, why }, 'the server cannot be had for now; it is tried again when somebody calls')
  } else if (verdict) {
    log.info({ ...named, era: verdict.era, revision: verdict.revision, why: verdict.why }, 'server ready')
  } else {
    log.info(named, 'what the server speaks is found out when somebody calls who has credentials for it')
  }
}

/** Goes over to another configuration when one of its files changes, and on SIGHUP. */
function followChanges(
  log: Logger,
  bridge: Bridge,
  files: readonly string[],
  { found, current }: { found: FoundServers | undefined; current: { settings: Settings } },
): void {
  let followed: readonly string[] = []
  const follow = (now: readonly string[]) => {
    for (const file of followed) unwatchFile(file)
    followed = now
    // Looked at by name again and again: editors and Kubernetes put another file in its place.
    for (const file of followed) watchFile(file, { interval: FILE_CHECK, persistent: false }, look)
  }
  const look = () => {
    let command: Command
    try {
      command = parseCommand(process.argv.slice(2), process.env)
    } catch (error) {
      const issues = error instanceof ConfigError ? error.issues : [{ path: '', message: String(error) }]
      log.error({ issues }, 'the configuration is not right: the one before stays')
      return
    }
    if (command.kind !== 'run') return
    const { settings } = command
    follow(command.files)
    for (const { path, message } of unknownKeys(settings)) log.warn({ path }, message)
    warnOfWriters(log, command.files)
    current.settings = settings
    reload(log, bridge, found?.with(settings) ?? settings)
  }
  follow(files)
  process.on('SIGHUP', look)
}

/** Whoever may write the configuration decides which programs are started. */
function warnOfWriters(log: Logger, files: readonly string[]): void {
  for (const path of writableByGroup(files))
    log.warn({ path }, 'this file may be written by all users of its group: is that meant? If not, run chmod g-w')
}

function reload(log: Logger, bridge: Bridge, settings: Settings): void {
  bridge.reload(settings).then(
    ({ fixed, ...changes }) => {
      log.info(changes, 'configuration changed')
      if (fixed.length > 0) log.warn({ options: fixed }, 'these take effect when the bridge is started again')
    },
    (error: unknown) => log.error({ err: error }, 'the configuration cannot be used: the one before stays'),
  )
}

/** Looks for servers, if any are to be found. On a pipe there is one, so that it has to be there from the beginning. */
async function finding(
  settings: Settings,
  surroundings: Surroundings,
  onPipe: boolean,
): Promise<FoundServers | undefined> {
  if (settings.discover.length === 0) return undefined
  const { FoundServers } = await import('./found/servers.js')
  const found = new FoundServers({ settings, surroundings, elsewhere: ELSEWHERE })
  surroundings.log.info({ where: settings.discover }, 'looking for servers')
  await Promise.race([found.look(), ...(onPipe ? [] : [sleep(FINDING, undefined, { ref: false })])])
  const names = Object.keys(found.with(settings).mcpServers)
  if (onPipe && names.length !== 1) {
    found.close()
    throw new ConfigError([
      { path: 'discover', message: `on stdio there is one server, and there are ${names.join(', ') || 'none'}` },
    ])
  }
  return found
}

/** Ends the process, gently. Each further cause to end it, be it a signal or the end of the input, leaves less time. */
function stopper(
  bridge: Bridge,
  tracing: Tracing | undefined,
  found: FoundServers | undefined,
): (hurry?: boolean) => Promise<void> {
  let causes = 0
  return async (hurry = false) => {
    if (++causes > 2) process.exit()
    found?.close()
    await bridge.close(hurry || causes > 1)
    await tracing?.close()
    process.exit()
  }
}

/** Says where to go from here. */
function announce(
  log: Logger,
  { log: { format }, auth }: Settings,
  { mounts, adminUrl }: Bridge,
  urls: ReadonlyMap<string, string>,
): void {
  if (adminUrl !== undefined) log.info({ url: adminUrl }, 'health and metrics')
  const token = auth?.tokens === undefined && !auth?.passthrough ? '' : ' -H "authorization: Bearer $TOKEN"'
  // An address that stands for all of this machine is none that one can call.
  const [first = ''] = [...urls.values()].map((url) =>
    url.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])/, 'http://127.0.0.1'),
  )
  const curl = `curl -s ${first} -H 'content-type: application/json'${token} -d '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'`
  if (urls.size === 0) return log.warn('no server has been found yet: they are served as soon as they are')
  const targets = [...urls].map(([name, url]) => ({ url, target: mounts.get(name)?.server.target ?? name }))
  if (format === 'pretty' || (format === 'auto' && terminal())) {
    const lines =
      targets.length === 1
        ? targets.map(({ url, target }) => ` listens on ${url}\n  for ${target}\n`)
        : ['\n', ...targets.map(({ url, target }) => `  ${url}  for ${target}\n`)]
    process.stderr.write(`\nmcp-bridge ${version}${lines.join('')}\nTry it:\n  ${curl}\n\n`)
  } else {
    for (const [i, [server, url]] of [...urls].entries())
      log.info({ url, ...(urls.size > 1 && { server }), ...(i === 0 && { try: curl }) }, 'listening')
  }
}

/** One sentence for what went wrong and one for what to do, and the exit code for it. */
function complain(error: unknown): number {
  if (error instanceof UsageError) {
    process.stderr.write(`mcp-bridge: ${error.message}\n  mcp-bridge --help shows how it is used.\n`)
    return EXIT.usage
  }
  if (error instanceof ConfigError) {
    const lines = error.issues.map(({ path, message }) => `  ${path}${path && ' '}${message}\n`)
    process.stderr.write(`mcp-bridge: the configuration is not right:\n${lines.join('')}`)
    return EXIT.config
  }
  if (error instanceof Fault) {
    process.stderr.write(`mcp-bridge: ${error.message}\n${reasons(error)}`)
    return EXIT.failed
  }
  if (error instanceof Error && 'code' in error && 'port' in error) {
    const { code, port } = error
    const what = code === 'EADDRINUSE' ? `port ${port} is in use` : `cannot listen on port ${port}: ${error.message}`
    process.stderr.write(`mcp-bridge: ${what}\n  Choose another with --listen http://127.0.0.1:8081/mcp\n`)
    return EXIT.failed
  }
  process.stderr.write(`mcp-bridge: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.failed
}

function reasons({ cause }: Fault): string {
  if (!(cause instanceof ChannelError)) return ''
  const said =
    cause.stderr.length === 0
      ? ''
      : `  It last wrote to stderr:\n${cause.stderr.map((line) => `    ${line}\n`).join('')}`
  const inner =
    cause.cause instanceof Error && !cause.message.includes(cause.cause.message) ? `  ${cause.cause.message}\n` : ''
  return `${inner}${said}  mcp-bridge probe <server> shows how far it gets; --log-level debug tells more.\n`
}

function terminal(): boolean {
  return process.stderr.isTTY === true
}
