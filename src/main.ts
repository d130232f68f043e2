/** The process: arguments, signals, exit codes. The only file that touches `process`. */

import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import { Bridge } from './bridge/bridge.js'
import type { BridgeContext } from './bridge/context.js'
import type { FoundServers } from './bridge/discovered-servers.js'
import type { Discovery } from './bridge/discovery-runtime.js'
import { describe, inspect } from './bridge/inspect.js'
import type { Mount } from './bridge/mount.js'
import { announce, report } from './cli/announce.js'
import type { SignInTarget } from './cli/auth.js'
import { checkedInWords } from './cli/check.js'
import { type Circumstances, cliErrorOf, EXIT, inFields, inWords } from './cli/errors.js'
import { type Command, parseCommand, speaksToPeople } from './cli/parse.js'
import { losesHeaders } from './cli/runtime.js'
import { writableByGroup } from './cli/writable.js'
import type { Issue } from './config/error.js'
import { browserOf, ConfigError, parseListen, type Settings } from './config/settings.js'
import { LineWriter } from './log/writer.js'
import { createLog, isReadable } from './log.js'
import type { Log } from './logging.js'
import { type SignInParts, signInParts } from './oauth/parts.js'
import { Fault, needsSignIn } from './protocol/fault.js'
import { startTracing } from './telemetry/tracing.js'
import type { Tracing } from './telemetry/types.js'
import { within } from './time.js'
import { endPrograms } from './upstream/transport/stdio/process-group.js'

/** Milliseconds between looks at the files of the configuration. */
const FILE_CHECK = 1_000
/** Milliseconds for which the bridge waits for what is to be found before it begins without it. */
const FINDING = 10_000
/** Milliseconds at the end in which what waits to be written to stderr may still be read. */
const LAST_WORDS = 1_000
/** Milliseconds after which `probe` says what it is waiting for. */
const SILENCE = 2_000
/** The cause to end that a client on stdio gives by closing its output. */
const INPUT_ENDED = 'the input has ended'
const CONFIG_SOURCES = { env: process.env, read: (path: string) => readFileSync(path, 'utf8') }
const STDERR = new LineWriter({ fd: 2, stream: () => process.stderr })
const OUTPUT = {
  out: (text: string) => process.stdout.write(text),
  err: (text: string) => STDERR.write(text),
  write: (text: string) => STDERR.write(text),
  terminal: isatty(2),
}
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
/** How complaints are written: commands of people get words, and a bridge that serves complains as its log is. */
const speaking: Circumstances & { readable: boolean } = {
  readable: speaksToPeople(process.argv.slice(2), OUTPUT.terminal),
  probing: false,
}

/** What a signal does that ends the process. Until there is a bridge to stop, it ends the programs that have been started. */
let onSignal = (signal: 'SIGTERM' | 'SIGINT'): void => {
  const code = signal === 'SIGINT' ? 130 : 143
  endPrograms().then(
    () => process.exit(code),
    () => process.exit(code),
  )
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => onSignal(signal))

try {
  const code = await run(parseCommand(process.argv.slice(2), process.env))
  if (code !== undefined) {
    // What goes to a slow reader goes out whole.
    await new Promise((resolve) => process.stdout.write('', resolve))
    await end(code)
  }
} catch (error) {
  await end(complain(error))
}

/** Does what is asked for. Resolves to the exit code of a command, and to nothing where the bridge goes on serving. */
async function run(command: Command): Promise<number | undefined> {
  if (command.kind !== 'run') process.stdout.on('error', stdoutFailed)
  switch (command.kind) {
    case 'help': {
      const { helpOf, shortHelp } = await import('./cli/help.js')
      OUTPUT.out(command.commands ? helpOf(command.commands) : shortHelp())
      return EXIT.ok
    }
    case 'version':
      OUTPUT.out(`${version}\n`)
      return EXIT.ok
    case 'check':
      OUTPUT.out(checkedInWords(command))
      return EXIT.ok
    case 'probe':
      speaking.probing = true
      await probe(command.settings, command.json)
      return EXIT.ok
    case 'discover': {
      const { settings, json } = command
      const { runDiscover } = await import('./cli/discover.js')
      const usable = await runDiscover(await discovering(), settings, OUTPUT, json)
      return usable ? EXIT.ok : EXIT.failed
    }
    case 'trust': {
      const { action, trustStore } = command
      const { runTrust } = await import('./cli/trust.js')
      const context = { trustStore, env: process.env, discovering: await discovering(), output: OUTPUT }
      return (await runTrust(action, context)) ? EXIT.ok : EXIT.failed
    }
    case 'login':
      await login(command.settings)
      return EXIT.ok
    case 'logout': {
      const { runLogout } = await import('./cli/auth.js')
      const { settings } = command
      const parts = signingIn(settings, { store: command.store })
      const bridge = settings && new Bridge(settings, { log: quietLog(), version, env: process.env, signIn: parts })
      try {
        return (await runLogout(bridge && targetOf(bridge), parts.store, OUTPUT)) ? EXIT.ok : EXIT.failed
      } finally {
        await bridge?.close()
      }
    }
    case 'auth status': {
      const { runAuthStatus } = await import('./cli/auth.js')
      const { settings, store, json } = command
      return (await runAuthStatus(settings, signingIn(settings, { store }).store, OUTPUT, json)) ? EXIT.ok : EXIT.failed
    }
    case 'run':
      return serve(command)
  }
}

/** Signs in to the one server of the settings. Rejects with a Fault. */
async function login(settings: Settings): Promise<void> {
  const { runLogin } = await import('./cli/auth.js')
  const stopping = new AbortController()
  onSignal = () => stopping.abort(new Fault('signInRefused', 'Signing in was interrupted'))
  const hint = 'If that browser is on another machine, paste here the address of the page where it ends:\n'
  const signIn = signingIn(settings, { hint })
  const bridge = new Bridge(settings, { log: quietLog(), version, env: process.env, signIn })
  const lines = createInterface({ input: process.stdin })
  try {
    await runLogin(targetOf(bridge), OUTPUT, lines, stopping.signal)
  } finally {
    lines.close()
    process.stdin.destroy()
    await bridge.close(true)
  }
}

/** The one server that a command is about. */
function targetOf(bridge: Bridge): SignInTarget {
  const [mount] = bridge.mounts.values()
  const { name, accounts, server } = mount as Mount
  return { name, accounts, ask: () => server.warmUp() }
}

function quietLog(): Log {
  return createLog({ level: 'silent', format: 'auto' }, OUTPUT)
}

/** What it takes to sign in to servers. `store` counts before what the settings say. */
function signingIn(
  settings: Settings | undefined,
  { store, log = quietLog(), hint = '' }: { store?: string | undefined; log?: Log; hint?: string } = {},
): SignInParts {
  const isNamed = process.argv.some((word) => /^(?:-c|--config\b)/.test(word))
  return {
    ...signInParts({
      folder: store ?? settings?.oauth.store,
      browser: settings && browserOf(settings),
      env: process.env,
      platform: process.platform,
      uid: process.geteuid?.(),
      // A log is kept, and read by others: there, the address has no place.
      show: (address) => {
        if (speaking.readable) OUTPUT.err(`Open this address in a browser to sign in:\n\n  ${address}\n\n${hint}`)
      },
      onDegraded: (why) =>
        log.warn({ event: 'tokens_not_stored', why }, 'cannot store tokens; they are lost when the process ends'),
    }),
    // Who has given an address has no file in which the server has a name.
    loginName: (name, url) => (isNamed ? name : (url.split('?', 1)[0] as string)),
  }
}

/** What makes what finds servers, and meets them. */
async function discovering(): Promise<(settings: Settings) => Discovery> {
  const { Discovery } = await import('./bridge/discovery-runtime.js')
  const log = createLog({ level: 'silent', format: 'auto' }, OUTPUT)
  return (settings) => new Discovery({ settings, context: { log, version, env: process.env }, sources: CONFIG_SOURCES })
}

async function probe(settings: Settings, json: boolean): Promise<void> {
  const { level } = settings.log
  const log = createLog({ ...settings.log, level: level === 'info' ? 'error' : level }, OUTPUT)
  const bridge = new Bridge(settings, { log, version, env: process.env, signIn: signingIn(settings) })
  const { server } = bridge
  if (!server.isProgram) speaking.target = server.target
  if (OUTPUT.terminal && !json) OUTPUT.err(`Asking ${server.target} …\n`)
  const { probe, initialize } = server.patience
  const limits = `up to ${probe / 1000} s for server/discover, then up to ${initialize / 1000} s for initialize`
  const waiting = setTimeout(() => OUTPUT.err(`No answer yet. mcp-bridge waits ${limits}.\n`), SILENCE).unref()
  try {
    const inspection = await inspect(server, { tools: 'attempted' }).catch(async (error: unknown) => {
      const { accounts } = targetOf(bridge)
      if (!accounts || !needsSignIn(error)) throw error
      const { describeSignIn } = await import('./cli/auth.js')
      const described = await describeSignIn(accounts, error, server.target, json).catch((failure: unknown) => {
        const { fault, message } = Fault.from(failure)
        throw new Fault(fault, message, { cause: error.cause })
      })
      OUTPUT.out(`${described}\n`)
      return undefined
    })
    if (!inspection) return
    OUTPUT.out(`${json ? JSON.stringify(inspection, null, 2) : describe(server.target, inspection)}\n`)
  } finally {
    clearTimeout(waiting)
    await bridge.close()
  }
}

async function serve({ settings, files, notes, format }: Command & { kind: 'run' }): Promise<undefined> {
  speaking.readable = isReadable(settings.log, OUTPUT)
  const log = createLog(settings.log, OUTPUT)
  STDERR.onRoom = (lines) => log.error({ event: 'log_lines_dropped', lines }, 'log lines dropped')
  if (format !== undefined)
    log.info({ event: 'config_format_detected', format }, 'configuration is in the format of another program')
  warnOfConfig(log, notes, files)
  if (losesHeaders(process.versions.node)) {
    const why = 'it drops request headers past the 1,000th (CVE-2026-58044); the bridge itself refuses over 100'
    const message = 'upgrade Node.js to the newest patch of its version'
    log.warn({ event: 'node_outdated', node: process.versions.node, why }, message)
  }
  const listen = parseListen(settings.listen)
  // On a pipe there is nobody who could ask for them.
  const counted = settings.metrics && listen.kind === 'http'
  // Loaded only where it is used, as what draws up traces is.
  const metrics = counted ? new (await import('./telemetry/metrics.js')).Metrics({ version }) : undefined
  const tracing = await startTracing(process.env, { version, log })
  const signIn = signingIn(settings, { log })
  const context = { log, version, env: process.env, metrics, tracer: tracing?.tracer, signIn }
  const found = await finding(settings, context, listen.kind === 'stdio')
  const bridge = new Bridge(found?.with(settings) ?? settings, { ...context, lead: found?.lead })
  if (bridge.mounts.size === 1 && !bridge.server.isProgram) speaking.target = bridge.server.target
  const stop = stopper(bridge, { tracing, found, onPipe: listen.kind === 'stdio' })
  onSignal = (signal) => {
    log.info({ event: 'stopping', signal }, 'shutting down')
    stop(Symbol(signal)).catch(() => process.exit(EXIT.failed))
  }
  process.on('uncaughtException', (error) => {
    process.exitCode = complain(error)
    stop(error, true).catch(() => process.exit(EXIT.failed))
  })
  try {
    if (listen.kind === 'stdio') {
      const ready = bridge.server.warmUp()
      ready.catch(() => {})
      const piped = bridge.pipe({ input: process.stdin, output: process.stdout })
      await Promise.race([ready.then(() => piped), piped])
      await stop(INPUT_ENDED)
      return
    }
    const say = speaking.readable ? OUTPUT.err : undefined
    announce(settings, bridge, await bridge.listen(listen), { log, version, say })
    const current = { settings }
    found?.follow(() => reload(log, bridge, found.with(current.settings)))
    if (files.length > 0) followChanges(log, bridge, files, { found, current })
    await bridge.warmUp((mount, verdict) => {
      // A program that cannot be started is a mistake of whoever has named it, if there is no other server.
      if (verdict instanceof Fault && bridge.mounts.size === 1 && mount.server.isProgram) throw verdict
      report(log, bridge.mounts, mount, verdict)
    })
  } catch (error) {
    process.exitCode = complain(error)
    await stop(error, true)
  }
}

/** Goes over to another configuration when one of its files changes, and on SIGHUP. */
function followChanges(
  log: Log,
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
      log.error({ event: 'config_invalid', issues }, 'invalid configuration; keeping the previous one')
      return
    }
    if (command.kind !== 'run') return
    const { settings } = command
    follow(command.files)
    warnOfConfig(log, command.notes, command.files)
    current.settings = settings
    reload(log, bridge, found?.with(settings) ?? settings)
  }
  follow(files)
  process.on('SIGHUP', look)
}

/** Warns of what is left out of the configuration, and of who else may write it: they decide which programs are started. */
function warnOfConfig(log: Log, notes: readonly Issue[], files: readonly string[]): void {
  for (const { message: why, ...where } of notes)
    log.warn({ event: 'config_adjusted', ...where, why }, 'part of the configuration was left out or changed')
  for (const path of writableByGroup(files))
    log.warn(
      { event: 'config_writable', path },
      'all users of the group can write this file; if unintended, run chmod g-w',
    )
}

function reload(log: Log, bridge: Bridge, settings: Settings): void {
  bridge
    .reload(settings, (mount, verdict) => report(log, bridge.mounts, mount, verdict))
    .then(
      ({ fixed, ...changes }) => {
        log.info({ event: 'config_changed', ...changes }, 'configuration changed')
        if (fixed.length > 0) log.warn({ event: 'restart_required', options: fixed }, 'these options need a restart')
      },
      (error: unknown) =>
        log.error({ event: 'config_unusable', err: error }, 'unusable configuration; keeping the previous one'),
    )
}

/** Looks for servers, if any are to be found. On a pipe there is one, so that it has to be there from the beginning. */
async function finding(settings: Settings, context: BridgeContext, onPipe: boolean): Promise<FoundServers | undefined> {
  if (settings.discover.length === 0) return undefined
  const { FoundServers } = await import('./bridge/discovered-servers.js')
  const found = new FoundServers({ settings, context, sources: CONFIG_SOURCES })
  context.log.info({ event: 'search_started', where: settings.discover }, 'looking for servers')
  await (onPipe ? found.look() : within(found.look(), FINDING))
  const names = Object.keys(found.with(settings).mcpServers)
  if (onPipe && names.length !== 1) {
    found.close()
    throw new ConfigError([
      { path: 'discover', message: `on stdio there is one server, and there are ${names.join(', ') || 'none'}` },
    ])
  }
  return found
}

/** Stops the bridge, and ends the process. Each further cause to end it leaves less time; the same one counts once. */
type Stop = (cause: unknown, hurry?: boolean) => Promise<void>

function stopper(
  bridge: Bridge,
  { tracing, found, onPipe }: { tracing: Tracing | undefined; found: FoundServers | undefined; onPipe: boolean },
): Stop {
  const causes = new Set<unknown>()
  // What was being answered when the input ended may still be; a signal after that is the second cause.
  if (onPipe) process.stdin.once('end', () => causes.add(INPUT_ENDED))
  return async (cause, hurry = false) => {
    causes.add(cause)
    if (causes.size > 2) return end()
    found?.close()
    await bridge.close(hurry || causes.size > 1)
    await tracing?.close()
    await end()
  }
}

/** Says on stderr what went wrong, and gives the exit code for it. */
function complain(error: unknown): number {
  const complaint = cliErrorOf(error, speaking)
  if (speaking.readable) STDERR.write(inWords(complaint))
  else createLog({ level: 'error', format: 'json' }, OUTPUT).fatal(inFields(complaint), complaint.kind)
  return complaint.code
}

/** Of a command, nobody reads the rest. */
function stdoutFailed({ code, message }: NodeJS.ErrnoException): void {
  if (code !== 'EPIPE') STDERR.write(`mcp-bridge: cannot write to stdout: ${message}\n`)
  end(EXIT.failed).catch(() => process.exit(EXIT.failed))
}

/** Ends the process, when what waits for stderr is written or cannot be. */
async function end(code: number | string = process.exitCode ?? EXIT.ok): Promise<void> {
  const free = await STDERR.flush(LAST_WORDS)
  // A terminal that somebody has stopped blocks the thread that writes to it, and an exit would wait for that thread.
  if (!free && OUTPUT.terminal) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}
