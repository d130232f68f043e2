/**
 * The process as commands see it, as an interface: its streams, signals and exit. `main` makes it, because nothing else
 * touches the process itself.
 */
import type { Readable, Writable } from 'node:stream'
import type { BridgeContext } from '../app/context.js'
import type { Log } from '../base/log/events.js'
import { createLog, type LogOutput } from '../base/log/log.js'
import { readNamed } from '../base/net/readable.js'
import type { ConfigSources } from '../config/settings.js'
import type { ProcessChannel } from '../services/replicas/link.js'
import type { CommandOutput } from './discover.js'
import type { Circumstances } from './errors.js'

/** The variable that makes a process a worker, if it has a channel to the one that has started it. */
export const WORKER = 'MCP_BRIDGE_WORKER'

/** A signal that ends the process. SIGHUP does if the terminal of the process was closed. */
export type EndSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP'

/** What commands may do with the process. */
export interface Program {
  version: string
  argv: readonly string[]
  env: BridgeContext['env']
  platform: NodeJS.Platform
  /** The user's number; undefined where there are none. */
  uid: number | undefined
  nodeVersion: string
  /** The path of Node.js, and of the script that it was started with. The executable is Node.js without a script. */
  node: string
  script: string | undefined
  /** The arguments of Node.js before the script. */
  nodeArgs: readonly string[]
  stdin: Readable
  stdout: Writable
  output: CommandOutput & LogOutput
  /** How errors are written: in words for people, or as the log is. Commands change it as they learn more. */
  errors: Circumstances & { readable: boolean }
  /** Replaces what a signal does. Until then it ends the programs that were started, and the process. */
  onSignal(handle: (signal: EndSignal) => void): void
  /** Calls back when the process is asked to read its configuration again (SIGHUP, while its terminal is open). Until then it ignores that. */
  onReload(handle: () => void): void
  /** Calls back after an uncaught error. The error has been written, and the exit code set. */
  onCrash(handle: (error: Error) => void): void
  /** Calls back with the number of log lines that were dropped, as soon as lines can be written again. */
  onDroppedLines(handle: (lines: number) => void): void
  /** The channel to the process that has started this one as a worker; undefined in others. */
  primary: ProcessChannel | undefined
  /** Writes an error to stderr, and sets the exit code. */
  fail(error: unknown): void
  /** Ends the process with this exit code, or else the one that was set, after pending stderr output is written or has failed. */
  end(code?: number): Promise<void>
  /** Ends the process now, as failed. */
  abort(): void
}

/** Where references of the configuration are looked up. */
export function sourcesOf({ env }: Pick<Program, 'env'>): ConfigSources {
  return { env, read: (path) => readNamed(path).toString('utf8') }
}

/** A log that writes nothing, for commands that print their result. */
export function quietLog({ output }: Pick<Program, 'output'>): Log {
  return createLog({ level: 'silent', format: 'auto' }, output)
}
