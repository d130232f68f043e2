/** Servers in the configuration files of other programs. */

import { constants, open } from 'node:fs/promises'
import { Failure } from '../../../base/net/failure.js'
import { printable } from '../../../base/texts/printable.js'
import { type Endpoint, httpEndpoint, stdioEndpoint } from '../../../config/endpoint.js'
import { FormatError, readConfigFile } from '../../../config/formats/config-file.js'
import { type CandidateTransport, type Finding, Findings, transportNamed } from '../candidate.js'
import { failure } from '../failure.js'

type Entry = Record<string, unknown>

const FILE_BYTES = 1024 * 1024

/**
 * The servers in these files. A file that cannot be read is recorded as a failure. A file that does not exist or names
 * no servers is skipped, unless `wanted`.
 */
export async function findInFiles(
  paths: readonly string[],
  { home, wanted = false }: { home: string; wanted?: boolean },
): Promise<Findings> {
  const found = new Findings()
  for (const path of paths) {
    await found.attempt(path, async () => {
      const text = await readBounded(path).catch((error: unknown) => {
        if (!wanted && error instanceof Failure && isMissing(error.cause)) return undefined
        throw error
      })
      if (text === undefined) return
      for (const [name, entry] of serversOf(text, { path, home, wanted })) {
        if (entry['disabled'] === true) continue
        await found.attempt(path, () => found.findings.push(finding(name, entry, path)))
      }
    })
  }
  return found
}

/** The finding for an entry of `mcpServers`. Throws a Failure if it is invalid. */
export function finding(name: string, entry: Entry, from: string): Finding {
  const { command, args = [] } = entry
  const { url } = entry
  let endpoint: Endpoint
  if (typeof command === 'string' && command !== '' && isTexts(args)) endpoint = stdioEndpoint(command, args)
  else if (typeof url === 'string') endpoint = httpEndpoint(url)
  else throw failure('file', 'malformed', `"${printable(name)}" has neither a command nor an address`)
  const transport: CandidateTransport | undefined = endpoint.kind === 'stdio' ? 'stdio' : transportNamed(entry['type'])
  const { type: _type, ...rest } = entry
  const written = {
    ...rest,
    ...(endpoint.kind === 'http' && { url }),
    ...(transport !== undefined && { type: transport }),
  }
  const inputs = [...JSON.stringify(rest).matchAll(/\$\{(input:[^}]+)\}/g)].map(([, input]) => input as string)
  return {
    name,
    endpoint,
    transport,
    source: 'config',
    from,
    entry: written,
    runnable: true,
    ...(inputs.length > 0 && { wants: [...new Set(inputs)] }),
  }
}

/** The entries of a file. Throws a Failure if it has none in a known format. */
function serversOf(
  text: string,
  { path, home, wanted }: { path: string; home: string; wanted: boolean },
): [string, Entry][] {
  let servers: unknown
  try {
    servers = readConfigFile(text, { path, home: home || undefined, options: [] }).servers
  } catch (cause) {
    if (cause instanceof FormatError) throw failure('file', 'malformed', `${path} is ${cause.message}`)
    throw cause
  }
  // The settings of a program may have no servers.
  if (servers === undefined && !wanted) return []
  if (!isRecord(servers)) throw failure('file', 'malformed', `${path} has no servers in a known format`)
  return Object.entries(servers).map(([name, entry]) => [name, isRecord(entry) ? entry : {}])
}

async function readBounded(path: string): Promise<string> {
  try {
    // Opening a pipe would wait.
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stat = await file.stat()
    if (!stat.isFile()) throw failure('file', 'unreadable', `${path} is not a regular file`)
    const bytes = Buffer.alloc(FILE_BYTES + 1)
    let length = 0
    for (let read = -1; read !== 0 && length <= FILE_BYTES; length += read)
      read = (await file.read(bytes, length, bytes.length - length)).bytesRead
    if (length > FILE_BYTES) throw failure('file', 'too-large', `${path} has more than ${FILE_BYTES} bytes`)
    return bytes.toString('utf8', 0, length)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    throw failure('file', 'unreadable', `${path} cannot be read (${code})`, { cause })
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function isRecord(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
