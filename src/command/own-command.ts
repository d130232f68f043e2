/** Commands that the program advises: each one runs as it is written, from any folder, with the flags that it needs. */
import { resolve } from 'node:path'
import { ownCommand, quoted } from '../base/texts/shell.js'
import { readArguments } from './arguments.js'
import { type CommandName, rowOf } from './commands.js'
import { SIGN_IN, TLS } from './flag-groups.js'
import { FLAGS, type Flag, type FlagName, type Flags } from './flags.js'
import type { Program } from './program.js'

/** Flags of signing in that concern this program alone. */
const OF_THIS: readonly FlagName[] = ['sign-in-wait', 'browser', 'no-browser', 'no-oauth']
/** Flags that another command needs if this program has them. The value of a header may be secret, so it is not repeated. */
const REPEATED: readonly FlagName[] = [
  'config',
  ...TLS,
  ...SIGN_IN.filter((flag) => !OF_THIS.includes(flag)),
  'trust-store',
]
/** How the values of flags that name files or folders are shown in help. */
const PLACES: readonly (string | undefined)[] = ['<file>', '<folder>']

type Started = Pick<Program, 'argv' | 'env'>

/** The flags of the program; none if they are invalid, which another place reports. */
export function flagsOf({ argv, env }: Started): Flags {
  try {
    return readArguments(argv, env).flags
  } catch {
    return {}
  }
}

/** The path of the configuration file of this program, from any folder; undefined if it has none. */
export function configOf(program: Started): string | undefined {
  const { config } = flagsOf(program)
  return config === undefined ? undefined : resolve(config)
}

/** The command with these words, and with the flags of this program that it takes and needs. */
export function adviceToRun(program: Started, command: CommandName, words: readonly string[] = []): string {
  return ownCommand(...command.split(' '), ...words, ...repeatedFlags(program, command))
}

/** The command that probes the server of this command line; undefined if that is a program, whose arguments may be secret. */
export function probeAgain(program: Started): string | undefined {
  const { command, words, flags, program: own } = readArguments(program.argv, program.env)
  const [server = flags.upstream ?? flags.server?.[0]] = command === 'replay' ? words.slice(1) : words
  if (own.length > 0 || server?.startsWith('stdio:') || (server === undefined && flags.config === undefined))
    return undefined
  return adviceToRun(program, 'probe', server === undefined ? [] : [server.split('?', 1)[0] as string])
}

/** The flags of this program that a command takes and needs, as words. `left`: all but these. */
function repeatedFlags(program: Started, command: CommandName, left: readonly FlagName[] = []): string[] {
  const given = flagsOf(program)
  const taken: readonly FlagName[] = rowOf(command).flags
  return REPEATED.filter((flag) => taken.includes(flag) && !left.includes(flag)).flatMap((flag) => {
    const values = [given[flag] ?? []].flat() as (string | number | boolean)[]
    const { value }: Flag = FLAGS[flag]
    return values.flatMap((one) =>
      value === undefined ? [`--${flag}`] : [`--${flag}`, PLACES.includes(value) ? resolve(String(one)) : String(one)],
    )
  })
}

/** What comes after "mcp-bridge login" for a server of the file of this program, or else for an address. */
export function loginWords(program: Started, name: string, url: string, isInFile: boolean): string {
  // A name that could be a flag or an address is one by its flag.
  const named = /^-|^(?:sse\+)?https?:/.test(name) ? [`--server=${name}`] : [name]
  const words = isInFile ? named : [url.split('?', 1)[0] as string]
  return [...words, ...repeatedFlags(program, 'login', isInFile ? [] : ['config'])]
    .map((word) => quoted(word))
    .join(' ')
}
