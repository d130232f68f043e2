/**
 * The default command: serves, reads the configuration again when its files change or on SIGHUP, and shuts down on a
 * signal.
 */
import { unwatchFile, watchFile } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { Bridge } from '../app/bridge.js'
import type { BridgeContext } from '../app/context.js'
import { listStoreOf } from '../app/list-stores.js'
import type { Mount } from '../app/mount.js'
import { servicesFor } from '../app/services.js'
import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { createLog, isReadable } from '../base/log/log.js'
import { homeFolder } from '../base/net/home-folder.js'
import { stateFolder } from '../base/net/state-folder.js'
import { within } from '../base/time/time.js'
import { ConfigError, isCallable, parseListen, type Settings, signsIn } from '../config/settings.js'
import type { Verdict } from '../servers/era/verdict.js'
import type { FoundServers } from '../services/discovery/found-servers.js'
import type { OpenTelemetry } from '../services/telemetry/opentelemetry.js'
import { announce, report } from './announce.js'
import { collectRarely } from './garbage.js'
import { Heartbeat } from './heartbeat.js'
import { loadInspector } from './inspector.js'
import { inspectorAddress } from './inspector-address.js'
import { ManagedLayer } from './managed-servers.js'
import { configOf, flagsOf } from './own-command.js'
import { type Command, parseCommand } from './parse.js'
import { type Program, sourcesOf } from './program.js'
import type { RecordingFile } from './record.js'
import { losesHeaders } from './runtime.js'
import { titleOf } from './server-title.js'
import type { Layered } from './settings.js'
import { originsOf, StatusSocket } from './status-socket.js'
import type { Worker } from './worker.js'
import { writableByGroup } from './writable.js'

export type RunCommand = Command & { kind: 'run' }

/** Additions of a command that serves. */
export interface Serving {
  /** What this process is, if it is one of several that serve together. */
  worker?: Worker
  /** Suggested commands, instead of `server/discover`. */
  tries?(url: string): readonly string[]
  /** Called when clients can connect, with the address of the first group or server, and that of the inspector with its token. */
  onListening?(url: string, inspector: string | undefined): void
  /** Called before the bridge stops because of a signal. */
  onStop?(): void
}

/** Milliseconds between checks of the configuration files. */
const FILE_CHECK = 1_000
/** Most milliseconds to wait for discovery before starting without its results. */
const FINDING = 10_000
/** The cause to stop when a client on stdio closes its output. */
const INPUT_ENDED = 'the input has ended'
/** The cause when a terminal closes: the system and the shell may each send a signal. */
const TERMINAL_CLOSED = 'the terminal was closed'

/** Starts the bridge, and follows its configuration until the process ends. Resolves once it serves, or has ended. */
export async function serve(
  { settings: all, files, notes, warnings, format, record }: RunCommand,
  program: Program,
  { worker, tries, onListening, onStop }: Serving = {},
): Promise<void> {
  const { version, env, output, errors } = program
  const settings = worker?.part(all) ?? all
  errors.readable = isReadable(settings.log, output)
  const written = createLog(settings.log, output)
  const log = worker ? written.child({ worker: worker.number }) : written
  program.onDroppedLines((lines) => log.error({ event: 'log_lines_dropped', lines }, 'log lines dropped'))
  if (format !== undefined)
    log.info({ event: 'config_format_detected', format }, 'configuration is in the format of another program')
  warnOfConfig(log, { notes, warnings, files })
  if (losesHeaders(program.nodeVersion)) {
    const why = 'it drops request headers past the 1,000th (CVE-2026-58044); the bridge itself refuses over 100'
    const message = 'upgrade Node.js to the newest patch of its version'
    log.warn({ event: 'node_outdated', node: program.nodeVersion, why }, message)
  }
  const listen = parseListen(settings.listen)
  // A client on a pipe cannot request them.
  const tools = settings.metricsTools
  const counted = settings.metrics && listen.kind === 'http'
  // Code for some configurations only is loaded on demand.
  const metrics = counted
    ? new (await import('../services/telemetry/metrics.js')).Metrics({ version, tools })
    : undefined
  const wantsTraces = Object.keys(env).some((name) => name.startsWith('OTEL_'))
  const tracing = wantsTraces
    ? await (await import('../services/telemetry/tracing.js')).startTracing(env, { version, log })
    : undefined
  const named = tracing !== undefined || (counted && tools > 0)
  const names = named ? new (await import('../mcp/protocol/listed-names.js')).ListedNames() : undefined
  const loadSignIn = async () => (await import('./sign-in.js')).signInFor(program, settings, { log })
  const signIn = signsIn(settings) ? await loadSignIn() : undefined
  const replicas = worker
    ? await worker.replicas(settings, log)
    : settings.redis && (await import('../app/replicas.js')).replicasOf(settings, log)
  const folder = stateFolder(env, homeFolder())
  const recording =
    record === undefined
      ? undefined
      : await (await import('./record.js')).startRecording(record, { hide: settings.inspect?.hide ?? [], log })
  const inspector =
    settings.inspect &&
    new (await loadInspector()).Inspector(settings.inspect, {
      version,
      log,
      folder,
      replica: replicas?.id,
      mayTry: isCallable(settings),
      title: titleOf(settings),
      also: recording?.record,
    })
  const recorder = inspector?.recorder ?? recording?.recorder
  const lists = listStoreOf(settings, { folder, log, records: replicas?.records })
  const tracer = tracing?.tracer
  const managed = new ManagedLayer()
  const services = await servicesFor(settings)
  const parts = { metrics, tracer, names, lists, replicas, workers: worker, signIn, inspector, recorder, managed }
  const context = { services, loadSignIn, log, version, env, ...parts }
  const found = await finding(settings, context, { onPipe: listen.kind === 'stdio', config: configOf(program) })
  const bridge = new Bridge(found?.with(settings) ?? settings, { ...context, lead: found?.lead })
  if (bridge.mounts.size === 1 && !bridge.server.isProgram) errors.target = bridge.server.target
  // The process that has started a worker speaks for all of them.
  const heartbeat = new Heartbeat(worker ? undefined : env['MCP_BRIDGE_HEALTH_FILE'], log)
  const socket = new StatusSocket(worker ? undefined : folder, log)
  const stop = stopper(bridge, program, {
    tracing,
    found,
    recording,
    heartbeat,
    socket,
    onPipe: listen.kind === 'stdio',
  })
  program.onSignal((signal) => {
    log.info({ event: 'stopping', signal }, 'shutting down')
    onStop?.()
    stop(signal === 'SIGHUP' ? TERMINAL_CLOSED : Symbol(signal)).catch(program.abort)
  })
  program.onCrash((error) => {
    stop(error, true).catch(program.abort)
  })
  const current = { settings }
  const reloaded = (isSuccessful: boolean) => metrics?.reloaded(isSuccessful)
  // Before it serves there is nothing to do: what changes until then is read when it does.
  let readAgain = () => {}
  program.onReload(() => readAgain())
  const follow = () => {
    readAgain = followChanges(log, bridge, files, { found, current, program, reloaded, managed, worker })
  }
  try {
    if (listen.kind === 'stdio') {
      const ready = bridge.warmUp((mount, verdict) => {
        endIfUseless(bridge, mount, verdict)
        if (bridge.mounts.size > 1 || verdict instanceof Fault) report(log, bridge.mounts, mount, verdict)
      })
      ready.catch(() => {})
      const piped = bridge.pipe({ input: program.stdin, output: program.stdout })
      collectRarely()
      heartbeat.start()
      socket.serve(() => ({ ...bridge.inspected.status(), origins: [] }))
      follow()
      await Promise.race([ready.then(() => piped), piped])
      return await stop(INPUT_ENDED)
    }
    // Programs start while the bridge loads what serves HTTP. Their results are reported after the announcement.
    let announced = () => {}
    const listening = new Promise<void>((resolve) => {
      announced = resolve
    })
    const warm = bridge.warmUp(async (mount, verdict) => {
      await listening
      endIfUseless(bridge, mount, verdict)
      report(log, bridge.mounts, mount, verdict)
    })
    warm.catch(() => {})
    const say = errors.readable ? output.err : undefined
    const urls = await bridge.listen(listen)
    heartbeat.start()
    const origins = originsOf([...urls.values(), bridge.adminUrl])
    socket.serve(() => ({ ...bridge.inspected.status(), origins }))
    worker?.serves(origins)
    if (worker?.isFirst !== false)
      announce(settings, bridge, urls, {
        log,
        version,
        platform: program.platform,
        say,
        token: inspector?.token,
        tries,
      })
    announced()
    collectRarely()
    const [url] = [...bridge.groupUrls.values(), ...urls.values()]
    const { inspectUrl } = bridge
    if (url !== undefined) onListening?.(url, inspectUrl && inspectorAddress(inspectUrl, inspector?.token))
    found?.follow(() => void reload(log, bridge, found.with(current.settings)))
    follow()
    await warm
  } catch (error) {
    program.fail(error)
    await stop(error, true)
  }
}

/**
 * Throws a Fault if the only server is a program that cannot be started: that is a configuration mistake. A server at an
 * address may become available later, and is retried on the next request.
 */
function endIfUseless({ mounts }: Bridge, { server }: Mount, verdict: Verdict | Fault | undefined): void {
  if (verdict instanceof Fault && mounts.size === 1 && server.isProgram) throw verdict
}

/** Dependencies of the configuration watch. */
interface Following {
  found: FoundServers | undefined
  current: { settings: Settings }
  program: Program
  /** Called after a change, with whether the new configuration is in use. */
  reloaded(isSuccessful: boolean): void
  managed: ManagedLayer
  worker: Worker | undefined
}

/** Reloads the configuration when one of its files changes. Returns a function that does so at once. */
function followChanges(
  log: Log,
  bridge: Bridge,
  files: readonly string[],
  { found, current, program, reloaded, managed, worker }: Following,
): () => void {
  const read = (changes: Layered) => {
    const command = parseCommand(program.argv, program.env, changes)
    return command.kind === 'run' && worker ? { ...command, settings: worker.part(command.settings) } : command
  }
  let followed: readonly string[] = []
  const follow = (now: readonly string[]) => {
    for (const file of followed) unwatchFile(file)
    followed = now
    // Polled by name: editors and Kubernetes replace the file.
    for (const file of followed) watchFile(file, { interval: FILE_CHECK, persistent: false }, () => look())
    // A file that changed between reading and watching is read again.
    if (files.length > 0) setTimeout(() => look(true), FILE_CHECK).unref()
  }
  let lastInvalid: { text: string; at: number } | undefined
  const look = (onlyIfDifferent = false) => {
    let command: Command
    try {
      command = read(managed.changes)
    } catch (error) {
      const issues = error instanceof ConfigError ? error.issues : [{ path: '', message: String(error) }]
      const [text, now] = [JSON.stringify(issues), performance.now()]
      // One change is seen up to three times: by a signal, by the next look at the file, and when its name is another file.
      if (text !== lastInvalid?.text || now - lastInvalid.at > 3 * FILE_CHECK)
        log.error({ event: 'config_invalid', issues }, 'invalid configuration; keeping the previous one')
      lastInvalid = { text, at: now }
      reloaded(false)
      return
    }
    lastInvalid = undefined
    if (command.kind !== 'run') return
    const { settings } = command
    if (onlyIfDifferent && isDeepStrictEqual(settings, current.settings)) return
    follow(command.files)
    warnOfConfig(log, command)
    current.settings = settings
    reload(log, bridge, found?.with(settings) ?? settings, reloaded).catch(program.abort)
  }
  follow(files)
  managed.start({
    file: flagsOf(program).config,
    now: () => current.settings,
    read: (changes) => read(changes) as RunCommand,
    use: async ({ settings, files: read }) => {
      const failure = await reload(log, bridge, found?.with(settings) ?? settings, reloaded)
      if (failure) return failure
      current.settings = settings
      follow(read)
      return undefined
    },
  })
  return () => {
    if (files.length > 0) look()
    else log.info({ event: 'config_unchanged' }, 'asked to read the configuration again, but there is no file to read')
  }
}

/**
 * Warns of ignored parts of the configuration, of probable mistakes, and of other users who may write it: they decide which
 * programs start.
 */
function warnOfConfig(log: Log, { notes, warnings, files }: Pick<RunCommand, 'notes' | 'warnings' | 'files'>): void {
  for (const { message: why, ...where } of notes)
    log.warn({ event: 'config_adjusted', ...where, why }, 'part of the configuration was left out or changed')
  for (const { message: why, ...where } of warnings)
    log.warn({ event: 'config_suspicious', ...where, why }, 'a value of the configuration is probably a mistake')
  for (const path of writableByGroup(files))
    log.warn(
      { event: 'config_writable', path },
      'all users of the group can write this file or folder; if unintended, run chmod g-w',
    )
}

/** Applies settings. Calls `reloaded` with whether they are in use. Resolves to why they are not; never rejects. */
function reload(
  log: Log,
  bridge: Bridge,
  settings: Settings,
  reloaded: (isSuccessful: boolean) => void = () => {},
): Promise<Error | undefined> {
  return bridge
    .reload(settings, (mount, verdict) => report(log, bridge.mounts, mount, verdict))
    .then(
      ({ fixed, ...changes }) => {
        // What needs a restart has changed nothing yet.
        if (changes.options.length > 0 || fixed.length === 0)
          log.info({ event: 'config_changed', ...changes }, 'configuration changed')
        if (fixed.length > 0) log.warn({ event: 'restart_required', options: fixed }, 'these options need a restart')
        reloaded(true)
        return undefined
      },
      (error: unknown) => {
        log.error({ event: 'config_unusable', err: error }, 'unusable configuration; keeping the previous one')
        reloaded(false)
        return error instanceof Error ? error : new Error(String(error))
      },
    )
}

/** Starts discovery, if configured. A pipe has a single server, so that must be found before the start. */
async function finding(
  settings: Settings,
  context: BridgeContext,
  { onPipe, config }: { onPipe: boolean; config: string | undefined },
): Promise<FoundServers | undefined> {
  if (settings.discover.length === 0) return undefined
  const { FoundServers } = await import('../services/discovery/found-servers.js')
  const { discoveryHost } = await import('../app/discovery-host.js')
  const host = discoveryHost(context, config)
  const found = new FoundServers({ settings, host, sources: sourcesOf(context) })
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

/** Stops the bridge and ends the process. Each further cause shortens the remaining time; a repeated cause counts once. */
type Stop = (cause: unknown, hurry?: boolean) => Promise<void>

/** What ends with a bridge. */
interface Stopped {
  tracing: OpenTelemetry | undefined
  found: FoundServers | undefined
  recording: RecordingFile | undefined
  heartbeat: Heartbeat
  socket: StatusSocket
  onPipe: boolean
}

function stopper(
  bridge: Bridge,
  program: Program,
  { tracing, found, recording, heartbeat, socket, onPipe }: Stopped,
): Stop {
  const causes = new Set<unknown>()
  // Running calls may finish after the input ends; a signal after that is the second cause.
  if (onPipe) program.stdin.once('end', () => causes.add(INPUT_ENDED))
  return async (cause, hurry = false) => {
    causes.add(cause)
    if (causes.size > 2) return program.end()
    found?.close()
    await bridge.close(hurry || causes.size > 1)
    heartbeat.stop()
    await socket.close()
    recording?.close()
    await tracing?.close()
    await program.end()
  }
}
