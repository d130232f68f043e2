/** Finds out which process listens on a port of this machine, for the error that the port is in use. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { printable } from '../base/texts/printable.js'

/** The state of a socket that listens, and the column of its number, in /proc/net/tcp. */
const LISTENS = '0A'
const INODE = 9
/** Most characters of the name of a program. */
const NAME = 60
/** Programs that run the file that their first argument names. */
const RUNNERS = /^(?:node|nodejs|bun|deno|python[\d.]*|ruby|php|java)$/

/** The process in words, as "node server.js (process 123)"; undefined if it is not known. Only Linux tells it without other programs. */
export function ownerOf(port: number, proc = '/proc'): string | undefined {
  const sockets = new Set(['tcp', 'tcp6'].flatMap((table) => inodesIn(`${proc}/net/${table}`, port)))
  if (sockets.size === 0) return undefined
  const pid = names(proc).find((one) => /^\d+$/.test(one) && hasOneOf(sockets, `${proc}/${one}/fd`))
  if (pid === undefined) return undefined
  return `${programIn(`${proc}/${pid}/cmdline`)} (process ${pid})`
}

/** A command that shows who has the port. */
export function whoHas(port: number, platform: NodeJS.Platform): string {
  if (platform === 'win32') return `netstat -ano | findstr :${port}`
  return platform === 'linux' ? `ss -ltnp 'sport = :${port}'` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`
}

function inodesIn(table: string, port: number): string[] {
  return textOf(table)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === LISTENS && Number.parseInt(local.split(':')[1] ?? '', 16) === port)
    .flatMap((columns) => columns[INODE] ?? [])
}

function hasOneOf(sockets: ReadonlySet<string>, folder: string): boolean {
  return names(folder).some((one) => sockets.has(/^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/${one}`))?.[1] ?? ''))
}

/** The name of a program: its arguments may be secret. */
function programIn(file: string): string {
  const words = textOf(file).split('\0')
  const [first = 'a program', second = ''] = words.map((word) => word.replace(/^.*[\\/]/s, ''))
  if (words.slice(0, 3).some((word) => /(?:^|[\\/])mcp-bridge(?:$|[\\/.])/.test(word))) return 'another mcp-bridge'
  const runs = RUNNERS.test(first) && /^[\w.-]+\.\w+$/.test(second) && !second.startsWith('-')
  return printable(runs ? `${first} ${second}` : first, NAME)
}

function names(folder: string): string[] {
  return orNothing(() => readdirSync(folder), [])
}

function linkOf(path: string): string {
  return orNothing(() => readlinkSync(path), '')
}

function textOf(file: string): string {
  return orNothing(() => readFileSync(file, 'utf8'), '')
}

/** Processes end while they are looked at, and those of other users show little. */
function orNothing<T>(read: () => T, nothing: T): T {
  try {
    return read()
  } catch {
    return nothing
  }
}
