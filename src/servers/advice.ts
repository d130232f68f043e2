/** Advice for the operator about an unusable server: for errors and the log, never for clients. */

import { withoutCredentials } from '../base/credentials/credentials.js'
import type { Fault } from '../base/fault/fault.js'
import { printable, publicAddress } from '../base/texts/printable.js'
import { type HttpRefusal, saidIn } from '../mcp/protocol/refusal.js'
import { causeOf } from './transport/causes.js'
import { ChannelError } from './transport/channel.js'
import { lastWordsIn } from './transport/stdio/stderr-tail.js'

export interface OperatorAdvice {
  /** The HTTP status with which the server refused. */
  status?: number
  /** The address it redirects to, without the query. */
  location?: string
  /** The server's refusal, in one line. */
  said?: string
  /** A few lines of the stderr of a program, first its probable reason. */
  stderr?: readonly string[]
  next?: string
}

/** Most characters of the last words of a program. */
const WORDS = 300

/** The end of advice about a credential, for a server that is known by no name. */
const SIGN_IN = ', or sign in with mcp-bridge login <server>'
const CREDENTIAL = `The server requires a credential, or does not accept the one that it got. Give it a credential with --header "Authorization: Bearer …" or "headers" in its entry${SIGN_IN}.`
const HOST = 'If it says that it does not allow this host, use the host name that it allows, such as localhost.'
const PATH = 'Check the path of the address: most servers are at /mcp, HTTP+SSE servers at /sse.'
const ENDED =
  'The server has removed this endpoint. If it was its HTTP+SSE endpoint, use its Streamable HTTP address instead: most servers are at /mcp. Then leave out sse+ and "type": "sse".'
const ITS_LOG = 'The server, or a proxy before it, has failed. Look for the reason in its own log.'
const SLOW =
  'If the server needs longer, raise timeouts.initialize; for a program that writes to stderr while it starts, timeouts.start.'
const BUSY = 'The server is busy or down: try again later.'

/** Advice about a server that refuses with an HTTP status. */
export const BY_STATUS: Readonly<Record<number, string>> = {
  400: 'This may not be an MCP endpoint. If the server speaks TLS on this port, use https://.',
  401: CREDENTIAL,
  403: `${CREDENTIAL} ${HOST}`,
  404: PATH,
  405: PATH,
  406: PATH,
  407: 'A proxy requires a user and a password: put them into HTTP_PROXY, as in http://user:password@proxy.example:3128.',
  410: ENDED,
  429: BUSY,
  502: BUSY,
  503: BUSY,
  504: BUSY,
}

/** Advice about a server by a part of the message, the most specific part first. */
export const BY_MESSAGE = {
  'Cannot start ':
    'Correct what the message names. A program has to be on the PATH of the bridge, or given with its path. Run the command in a terminal, in the folder where the bridge runs.',
  'The server exited with code 0, ':
    'Run the command in a terminal: an MCP server on stdio prints nothing and waits. It may need an argument such as "stdio".',
  'The server exited with code ':
    'Run the command in a terminal. Programs get only a few environment variables: see "env" and "passEnvironment".',
  'neither a Streamable HTTP nor an HTTP+SSE endpoint': PATH,
  ' instead of a message': PATH,
} as const

/** The known facts of a failure, and the next step. `login`: what comes after "mcp-bridge login" for its server, if one can sign in there. */
export function adviceOn(fault: Fault, login?: string): OperatorAdvice {
  const refusal = refusalIn(fault)
  if (!refusal) {
    const next = nextIn(fault) ?? nextByStderr(fault) ?? nextByMessage(fault)
    const stderr = (programIn(fault)?.stderr ?? []).map(withoutCredentials)
    return { ...(stderr.length > 0 && { stderr }), ...(next !== undefined && { next }) }
  }
  const { status } = refusal
  const location = status >= 300 && status < 400 ? address(refusal.location) : undefined
  if (location !== undefined)
    return { status, location, next: `The server redirects: use the address ${location} instead.` }
  const signIn = login === undefined ? '' : `, or sign in with mcp-bridge login ${login}`
  const next = BY_STATUS[status]?.replace(SIGN_IN, () => signIn) ?? (status >= 500 ? ITS_LOG : undefined)
  const said = saidIn(refusal)
  return { status, ...(said !== undefined && { said }), ...(next !== undefined && { next }) }
}

/** Why a server is unavailable, in one line: the message, and the last words of a program on stderr. */
export function whyInLine(fault: Fault): string {
  const { message } = fault
  const words = lastWordsIn(programIn(fault)?.allStderr ?? [])
  if (words === undefined || message.includes(words)) return message
  return `${message}: ${printable(withoutCredentials(words), WORDS)}`
}

/** The failure with what a program wrote to stderr; undefined if there is none. */
function programIn(fault: Fault): ChannelError | undefined {
  return causesOf(fault).find((cause) => cause instanceof ChannelError && cause.allStderr.length > 0) as
    | ChannelError
    | undefined
}

function causesOf(fault: Fault): Error[] {
  const causes: Error[] = []
  for (let cause = fault.cause; cause instanceof Error && causes.length < 8; cause = cause.cause) causes.push(cause)
  return causes
}

function refusalIn(fault: Fault): HttpRefusal | undefined {
  return causesOf(fault)
    .flatMap((cause) => (cause instanceof ChannelError ? (cause.refusal ?? []) : []))
    .at(-1)
}

function nextIn(fault: Fault): string | undefined {
  return causesOf(fault)
    .flatMap((cause) => (cause instanceof ChannelError && cause.late ? SLOW : (causeOf(cause)?.next ?? [])))
    .at(-1)
}

const PORT_TAKEN =
  'Another process has this port: end it, or give the program another port. If that process is the same program for another client, set "process": "single" in its entry (--process single): then all clients share one.'
const TAKEN =
  /EADDRINUSE|\baddress (?:is )?(?:already )?in use|\bport\b.{0,80}\b(?:in use|taken|occupied|allocated)|only one usage of each socket address/i

/** Advice from the last output of a program. */
const BY_STDERR: readonly (readonly [reason: RegExp, next: string])[] = [
  [
    /^npm .*(?:could not be found|is not in this registry)/,
    'Check the name of the package: the registry does not have it.',
  ],
  [/^npm .*notarget/, 'Check the version of the package: the registry does not have it.'],
  [
    /^npm .*could not determine executable/,
    'The package has no program: check its name, or name the program with npx -p <package> <program>.',
  ],
  [
    /^npm .*(?:FetchError|request to|network)/,
    'npm could not download the package: check the network, and the proxy (HTTPS_PROXY).',
  ],
  [/No module named/, 'Install the module for the Python that the command starts.'],
  [
    /Cannot find module|can't open file|No such file or directory/,
    'Check the path of the program, and the folder in which it is started ("cwd").',
  ],
  [/docker.*(?:pull access denied|not found|manifest unknown)/i, 'Check the name of the image.'],
  [/Cannot connect to the Docker daemon|permission denied.*docker/i, 'Start Docker, and let this user use it.'],
]

function nextByStderr(fault: Fault): string | undefined {
  const lines = programIn(fault)?.allStderr ?? []
  const words = lastWordsIn(lines)
  if (words === undefined) return undefined
  return (
    BY_STDERR.find(([pattern]) => pattern.test(words))?.[1] ??
    (lines.some((line) => TAKEN.test(line)) ? PORT_TAKEN : undefined)
  )
}

function nextByMessage({ cause }: Fault): string | undefined {
  if (!(cause instanceof ChannelError)) return undefined
  return Object.entries(BY_MESSAGE).find(([part]) => cause.message.includes(part))?.[1]
}

/** A query may be secret. */
function address(location: string | undefined): string | undefined {
  return location === undefined ? undefined : printable(publicAddress(location), 200)
}
