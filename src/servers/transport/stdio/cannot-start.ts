/** Explains why a program cannot be started: usually its entry in the configuration is wrong, and this says where. */
import { accessSync, constants, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ChannelError } from '../channel.js'
import { isProgram } from './on-path.js'

export interface ProgramStart {
  command: string
  args: readonly string[]
  /** The complete environment. */
  env: Readonly<Record<string, string>>
  cwd?: string | undefined
}

/** Bytes from which Linux refuses an argument or a variable (MAX_ARG_STRLEN in its sources, which counts a NUL). */
const TOO_LONG = 128 * 1024 - 1

/** What an error of the system means, by its code. */
const REASONS: Readonly<Record<string, (start: ProgramStart) => string>> = {
  ENOENT: whyMissing,
  ENOTDIR: () => 'a file is in place of a folder in its path',
  EACCES: whyRefused,
  EPERM: whyRefused,
  E2BIG: whyTooBig,
  ENAMETOOLONG: () => 'its path, or its command line, is too long',
  ELOOP: () => 'its path has too many symbolic links',
  ENOEXEC: () => 'it is no program for this machine',
  EMFILE: () => 'too many open files',
  ENFILE: () => 'too many open files on this machine',
  EAGAIN: () => 'too many processes',
  ENOMEM: () => 'out of memory',
  ERR_INVALID_ARG_VALUE: whyInvalid,
}

/** The failure of a start. `cause` is what Node.js reported or threw. */
export function cannotStart(start: ProgramStart, cause: NodeJS.ErrnoException): ChannelError {
  const { code = '' } = cause
  const reason = Object.hasOwn(REASONS, code) ? REASONS[code] : undefined
  const why = whyNotThere(start) ?? reason?.(start) ?? cause.message
  // The prefix distinguishes the code from the same code of a connection.
  const known = Object.assign(new Error(cause.message), { code: `ERR_START_${code}` })
  return new ChannelError(`Cannot start ${start.command}: ${why}`, { delivered: 'no', cause: known })
}

/** The failure of a command that does not exist. For Windows, where cmd.exe starts but does not find it. */
export function missing(start: ProgramStart): ChannelError {
  return cannotStart(start, Object.assign(new Error('no such program'), { code: 'ENOENT' }))
}

/** What is wrong with the working directory; undefined if nothing is. */
function whyNotThere({ cwd }: ProgramStart): string | undefined {
  if (!cwd) return undefined
  try {
    if (!statSync(cwd).isDirectory()) return `"cwd" is a file, not a folder: ${cwd}`
    accessSync(cwd, constants.X_OK)
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return `"cwd" does not exist: ${cwd}`
    if (code === 'EACCES') return `this user may not enter "cwd": ${cwd}`
    return `"cwd" cannot be used: ${cwd} (${code})`
  }
}

function whyMissing({ command, env, cwd }: ProgramStart): string {
  if (isProgram(command, env, cwd)) return 'the interpreter that its first line names does not exist'
  const hint = command.includes(' ') ? ' (it contains a space: give command and arguments separately)' : ''
  return `command not found${hint}`
}

function whyRefused({ command, cwd }: ProgramStart): string {
  return isFolder(resolve(cwd ?? '.', command)) ? 'it is a folder' : 'this user may not execute it'
}

/** Whether a path is a folder; false if this user may not look at it. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function whyTooBig({ args, env }: ProgramStart): string {
  const isTooLong = (text: string) => Buffer.byteLength(text) >= TOO_LONG
  const argument = args.findIndex(isTooLong)
  if (argument >= 0) return `argument ${argument + 1} is too long (${Buffer.byteLength(args[argument] ?? '')} bytes)`
  const [name] = Object.entries(env).find(([key, value]) => isTooLong(`${key}=${value}`)) ?? []
  if (name !== undefined) return `the environment variable ${name} is too long`
  return 'its arguments and environment variables are too long together'
}

/** Names the text that contains NUL, which no text for a program may. */
function whyInvalid({ command, args, env, cwd }: ProgramStart): string {
  const has = (text: string | undefined) => text?.includes('\0') === true
  const variable = Object.entries(env).findIndex(([key, value]) => has(key) || has(value))
  const places = [
    has(command) && 'its name',
    has(cwd) && '"cwd"',
    args.some(has) && `argument ${args.findIndex(has) + 1}`,
    variable >= 0 && `the environment variable ${Object.keys(env)[variable]?.replaceAll('\0', '')}`,
  ]
  return `${places.find((place) => place !== false) ?? 'it'} contains a NUL character`
}
