/** The process: arguments, signals, exit codes. The only file that touches `process`. */
import { closeSync, openSync } from 'node:fs'
import process from 'node:process'
import { isSea } from 'node:sea'
import { isatty } from 'node:tty'
import { createLog } from './base/log/log.js'
import { LineWriter } from './base/log/writer.js'
import { waitForEachAddress } from './base/net/families.js'
import { versionOfBridge } from './base/version.js'
import { checkNow, invalidAsJson } from './command/check.js'
import { ENDS, EXIT } from './command/ends.js'
import { cliErrorOf, inFields, inWords } from './command/errors.js'
import { adviceToRun, configOf, probeAgain } from './command/own-command.js'
import { type Command, parseCommand, speaksToPeople } from './command/parse.js'
import { type EndSignal, type Program, quietLog, sourcesOf, WORKER } from './command/program.js'
import { startAhead } from './command/start-ahead.js'
import type { Settings } from './config/settings.js'
import { endPrograms } from './servers/transport/stdio/process-group.js'
import type { Discovery, DiscoveryOptions } from './services/discovery/discovery.js'

/** Milliseconds for pending stderr output to be read before the process ends. */
const LAST_WORDS = 1_000
const version = versionOfBridge()
const argv = process.argv.slice(2)
const terminal = isatty(2)
const { env } = process
const primary = channelToPrimary()
const STDERR = new LineWriter({ fd: 2, stream: () => process.stderr, isShared: primary !== undefined })
/**
 * The streams that are terminals of a process that was not detached by `nohup`, which replaces them. Only on Linux does it
 * replace the input as well.
 */
const STREAMS = process.platform === 'linux' ? [0, 1, 2] : [1, 2]
/** Milliseconds between checks for the terminal, and the failed checks after which the process counts as detached (`disown`). */
const LOOK = { every: 1_000, most: 5 }
/** Whether the process ends with its terminal. */
let attached = STREAMS.some((fd) => isatty(fd)) && hasTerminal()
if (attached) lookForTerminal()

/** Handles a signal that ends the process. */
let onSignal = (signal: EndSignal): void => {
  const exit = () => process.exit(signal === 'SIGINT' ? 130 : 143)
  endPrograms().then(exit, exit)
}
// The process that has started a worker tells it when to end: a terminal and systemd send signals to both.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => primary || onSignal(signal))
// Node.js would open its debugger for every process of this user, such as a server that the bridge has started.
process.on('SIGUSR1', () => {})
/** Handles SIGHUP of a command that serves. The system also sends it when the terminal of the process is closed. */
let onHangUp = (): void => {}

const program: Program = {
  version,
  argv,
  env,
  platform: process.platform,
  uid: process.geteuid?.(),
  nodeVersion: process.versions.node,
  node: process.execPath,
  script: isSea() ? undefined : process.argv[1],
  nodeArgs: isSea() ? [] : process.execArgv,
  // A stream is opened when a command uses it.
  get stdin() {
    return process.stdin
  },
  get stdout() {
    return process.stdout
  },
  output: {
    out: (text) => process.stdout.write(text),
    err: (text) => STDERR.write(text),
    write: STDERR.write.bind(STDERR),
    terminal,
  },
  errors: {
    readable: speaksToPeople(argv, terminal),
    probing: false,
    platform: process.platform,
    probe: () => probeAgain({ argv, env }),
  },
  primary,
  onSignal(handle) {
    onSignal = handle
  },
  onReload(handle) {
    onHangUp = handle
  },
  onCrash: (handle) =>
    process.on('uncaughtException', (error) => {
      program.fail(error)
      handle(error)
    }),
  onDroppedLines(handle) {
    STDERR.onRoom = handle
  },
  fail(error) {
    const { errors, output } = program
    const shown = cliErrorOf(error, errors)
    const { code, kind } = ENDS[shown.event]
    if (errors.readable) STDERR.write(inWords(shown))
    else createLog({ level: 'error', format: 'json' }, output).fatal(inFields(shown), kind)
    process.exitCode = code
  },
  end,
  abort: () => process.exit(EXIT.failed),
}

// Users of the bridge cannot act on warnings about experimental features of Node.js.
const [printWarning] = process.listeners('warning')
process.removeAllListeners('warning')
process.on('warning', (warning) => {
  if (warning.name !== 'ExperimentalWarning') printWarning?.(warning)
})
waitForEachAddress()
main().catch((error: unknown) => {
  program.fail(error)
  return end()
})

async function main(): Promise<void> {
  const code = await run(parseCommand(argv, env))
  if (code === undefined) return
  // A slow reader still gets all of the output.
  await new Promise((resolve) => process.stdout.write('', resolve))
  await end(code)
}

/** Runs a command. Resolves to its exit code; to undefined if the bridge serves. */
async function run(command: Command): Promise<number | undefined> {
  const { output } = program
  if (command.kind !== 'run' && command.kind !== 'demo') process.stdout.on('error', stdoutFailed)
  switch (command.kind) {
    case 'help': {
      const { helpOf, shortHelp } = await import('./command/help.js')
      output.out(command.commands ? helpOf(command.commands) : shortHelp())
      return EXIT.ok
    }
    case 'version':
      output.out(`${version}\n`)
      return EXIT.ok
    case 'check':
      output.out(await checkNow(command))
      return EXIT.ok
    case 'invalid':
      output.out(invalidAsJson(command))
      return EXIT.config
    case 'probe': {
      const { probe } = await import('./command/probe.js')
      return codeOf(await probe(command.settings, command.json, program))
    }
    case 'replay': {
      const { runReplay } = await import('./command/replay.js')
      return codeOf(await runReplay(command, program))
    }
    case 'tail': {
      const { tail } = await import('./command/tail.js')
      const { socketsOf } = await import('./command/tail-target.js')
      const options = { ...command, sockets: socketsOf(env) }
      return codeOf(await tail(options, { stdout: process.stdout, err: output.err, env }))
    }
    case 'status': {
      const { runStatus } = await import('./command/status.js')
      return codeOf(await runStatus(command.action, program))
    }
    case 'inspect': {
      const { runInspect } = await import('./command/inspect.js')
      await runInspect(command.action, program)
      return undefined
    }
    case 'completion': {
      const { completionFor } = await import('./command/completion.js')
      output.out(completionFor(command.shell))
      return EXIT.ok
    }
    case 'bundle': {
      const { runBundle } = await import('./command/extension/run.js')
      await runBundle(command.action, program)
      return EXIT.ok
    }
    case 'size': {
      const { sizeOf, sizingInWords } = await import('./command/size.js')
      const sizing = sizeOf(command.load)
      output.out(command.json ? `${JSON.stringify(sizing, null, 2)}\n` : sizingInWords(sizing))
      return EXIT.ok
    }
    case 'demo': {
      survive()
      const { demo } = await import('./command/demo.js')
      await demo(command.settings, program)
      return undefined
    }
    case 'demo server': {
      const serveDemo =
        command.era === 'legacy'
          ? (await import('./command/demo/server.js')).serveDemo
          : (await import('./command/demo/modern-server.js')).serveModernDemo
      await serveDemo(program.stdin, program.stdout)
      return EXIT.ok
    }
    case 'discover': {
      const { runDiscover } = await import('./command/discover.js')
      const { signInFor } = await import('./command/sign-in.js')
      const found = await discovering((settings) => signInFor(program, settings))
      return codeOf(await runDiscover(found, command.settings, output, command.json))
    }
    case 'trust': {
      const { runTrust } = await import('./command/trust.js')
      const { action, trustStore } = command
      return codeOf(
        await runTrust(action, {
          trustStore,
          env,
          discovering: await discovering(),
          output,
          list: adviceToRun(program, 'trust list'),
        }),
      )
    }
    case 'login': {
      const { login } = await import('./command/sign-in.js')
      await login(command.settings, program)
      return EXIT.ok
    }
    case 'logout': {
      const { logout } = await import('./command/sign-in.js')
      return codeOf(await logout(command.settings, command.store, program))
    }
    case 'auth status': {
      const { runAuthStatus } = await import('./command/auth.js')
      const { signInFor } = await import('./command/sign-in.js')
      const { settings, store, json } = command
      return codeOf(await runAuthStatus(settings, signInFor(program, settings, { store }).store, output, json))
    }
    case 'edit': {
      const { runEdit } = await import('./command/edit-config.js')
      runEdit(command.action, program)
      return EXIT.ok
    }
    case 'wrap': {
      const { runWrap } = await import('./command/wrap/run.js')
      runWrap(command.action, program)
      return EXIT.ok
    }
    case 'run': {
      survive()
      if (!primary && command.settings.workers !== 1) {
        const { workersFor, startWorkers } = await import('./command/workers.js')
        const count = workersFor(command.settings)
        if (count > 1) {
          startWorkers(command, program, count)
          return undefined
        }
      }
      if (command.record === undefined) startAhead(command.settings, env)
      if (primary) {
        const { serveAsWorker } = await import('./command/serve-worker.js')
        await serveAsWorker(command, program, primary)
        return undefined
      }
      const { serve } = await import('./command/serve.js')
      await serve(command, program)
      return undefined
    }
  }
}

/** From now on, SIGHUP ends the process only if its terminal was closed. Before its command is known, and in others, it does. */
function survive(): void {
  process.on('SIGHUP', () => primary || (attached && !hasTerminal() ? onSignal('SIGHUP') : onHangUp()))
}

/** Programs that a worker starts are no workers. */
function channelToPrimary(): Program['primary'] {
  if (env[WORKER] === undefined || !process.send) return undefined
  delete env[WORKER]
  return process as Program['primary']
}

/** A terminal that closes sends a signal at once. If it disappears without a signal, the process was detached. */
function lookForTerminal(): void {
  let without = 0
  // Counts checks, not time: the process may have been stopped (Ctrl-Z) when the terminal was closed.
  const looking = setInterval(() => {
    without = hasTerminal() ? 0 : without + 1
    if (without < LOOK.most) return
    attached = false
    clearInterval(looking)
  }, LOOK.every).unref()
}

/** Whether a terminal controls the process. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch (error) {
    // If no file descriptor is free, there may be one.
    return /^E[MN]FILE$/.test(String((error as NodeJS.ErrnoException).code))
  }
}

function codeOf(succeeded: boolean): number {
  return succeeded ? EXIT.ok : EXIT.failed
}

/** Returns a function that creates the discovery of some settings, with the tokens of `signIn` if it is given. */
async function discovering(
  signIn?: (settings: Settings) => DiscoveryOptions['signIn'],
): Promise<(settings: Settings) => Discovery> {
  const { Discovery } = await import('./services/discovery/discovery.js')
  const { discoveryHost } = await import('./app/discovery-host.js')
  const host = discoveryHost({ log: quietLog(program), version, env }, configOf(program))
  const sources = sourcesOf(program)
  return (settings) => new Discovery({ settings, host, sources, signIn: signIn?.(settings) })
}

/** Ends the command when stdout is closed. */
function stdoutFailed({ code, message }: NodeJS.ErrnoException): void {
  if (code !== 'EPIPE') STDERR.write(`mcp-bridge: cannot write to stdout: ${message}\n`)
  end(EXIT.failed).catch(program.abort)
}

/** Ends the process after pending stderr output is written or has failed. */
async function end(code: number | string = process.exitCode ?? EXIT.ok): Promise<void> {
  const free = await STDERR.flush(LAST_WORDS)
  // A stopped terminal (Ctrl-S) blocks the thread that writes to it, and an exit would wait for that thread.
  if (!free && terminal) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}
