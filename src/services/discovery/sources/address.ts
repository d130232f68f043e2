/** Interprets a target that a person gives: a host, an address, a file, a search in a registry, or a command. */
import parseCommandLine from 'string-argv'
import { parseAddress } from '../../../base/net/address.js'
import { httpEndpoint, stdioEndpoint } from '../../../config/endpoint.js'
import { addressName, programName } from '../../../config/server-names.js'
import type { CandidateTransport, Finding } from '../candidate.js'
import { failure } from '../failure.js'

/** The meaning of a target. */
export type TargetMeaning =
  /** A host: look for its published servers. */
  | { kind: 'host'; origin: string }
  | { kind: 'registry'; query: string }
  | { kind: 'file'; path: string }
  /** The server itself. */
  | { kind: 'server'; finding: Finding }

/**
 * The meaning of a target, by its form: `registry:query`; `stdio:command args`, or anything with a space; `https://…`,
 * where an address without a path means its host; a path of a file; a host, with or without port or path. Throws a
 * Failure if it is ambiguous.
 */
export function meaningOf(given: string): TargetMeaning {
  const text = given.trim()
  if (text.startsWith('registry:')) return { kind: 'registry', query: text.slice('registry:'.length).trim() }
  if (text.startsWith('stdio:')) return command(text.slice('stdio:'.length), text)
  if (text.startsWith('file:')) return { kind: 'file', path: text.replace(/^file:(?:\/\/)?/, '') }
  if (/^sse\+https?:\/\//i.test(text)) return server(text.slice('sse+'.length), text, 'sse')
  if (/^https?:\/\//i.test(text)) return atAddress(text)
  if (/\s/.test(text)) return command(text, text)
  if (/^(?:[.~]?[\\/]|\.\.[\\/]|[A-Za-z]:[\\/])|\.(?:jsonc?|toml)$/i.test(text)) return { kind: 'file', path: text }
  // A name with a dot, a name with a port, localhost, or an IPv6 address.
  if (/^(?:[^/:@.]+\.[^/:@]+|[^/:@]+(?=:\d)|localhost|\[[\da-f:.]+\])(?::\d+)?(?:\/.*)?$/iu.test(text))
    return atAddress(`https://${text}`)
  throw failure(
    'url',
    'malformed',
    'This is neither a host nor an address: give one, the path of a file, registry:<query> or stdio:"<command> <args>"',
  )
}

function atAddress(text: string): TargetMeaning {
  const { origin, pathname, search } = parseAddress(text)
  const host = search === '' && (pathname === '/' || pathname.startsWith('/.well-known/'))
  return host ? { kind: 'host', origin } : server(text, text)
}

function server(address: string, from: string, transport?: CandidateTransport): TargetMeaning {
  const { username, password } = parseAddress(address)
  // Others can read a command line, and the address would be stored with the secrets.
  if (username !== '' || password !== '')
    throw failure(
      'url',
      'credentials',
      'An address must not have a user name or password. Put the credential into a header',
    )
  const endpoint = httpEndpoint(address)
  const entry = { ...(transport !== undefined && { type: transport }), url: endpoint.url }
  const name = addressName(endpoint.url)
  return { kind: 'server', finding: { name, endpoint, transport, source: 'address', from, entry, runnable: true } }
}

function command(text: string, from: string): TargetMeaning {
  const [program, ...args] = parseCommandLine(text)
  if (program === undefined)
    throw failure('url', 'malformed', 'stdio: requires a command, as in stdio:"npx -y some-server"')
  const endpoint = stdioEndpoint(program, args)
  const entry = { command: program, args }
  const name = programName(program, args)
  return {
    kind: 'server',
    finding: { name, endpoint, transport: 'stdio', source: 'address', from, entry, runnable: true },
  }
}
