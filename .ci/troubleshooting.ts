/**
 * docs/troubleshooting.md: what each message means, and what to do. Codes, causes and messages are taken from the sources; what
 * is written here by hand is checked against them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { table } from '../src/cli/configuration-page.js'
import { type EndEvent, EXIT } from '../src/cli/errors.js'
import { type FaultName, faults } from '../src/fault/fault.js'
import { BY_MESSAGE, BY_STATUS } from '../src/upstream/advice.js'
import { CAUSES } from '../src/upstream/transport/causes.js'
import { messagesByKind } from './messages.js'

export type Advice = readonly [meaning: string, next: string]

const source = new URL('../src/', import.meta.url)
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const texts = files.toSorted().map((name) => readFileSync(new URL(name, source), 'utf8'))

/** What ends the program. */
const ENDS: Readonly<Record<EndEvent, readonly [first: string, code: number, ...Advice]>> = {
  command_line_invalid: [
    '`mcp-bridge: <what is wrong>`, then `Run "mcp-bridge … --help" for help.`',
    EXIT.usage,
    'A flag, word or command is wrong or missing. The first line names it, and often what was probably meant.',
    'Correct the command line. `mcp-bridge help <command>` shows all flags of a command.',
  ],
  config_invalid: [
    '`mcp-bridge: invalid configuration:`',
    EXIT.config,
    'A file cannot be read, or an option in it, or set by a flag, is invalid. Each line below names the file, line and column, and the option.',
    'Correct what the lines name. `mcp-bridge check --config <file>` shows all mistakes without starting anything.',
  ],
  server_unavailable: [
    '`mcp-bridge: <why>`, then the address and what the server said or wrote to stderr',
    EXIT.failed,
    'The server cannot be used. The bridge ends because of it only on stdio, with a single server that is a program, and in `probe` and `login`.',
    'See [A server cannot be used](#a-server-cannot-be-used). `mcp-bridge probe <server>` shows which step fails.',
  ],
  listen_failed: [
    '`mcp-bridge: port <port> is in use`, or `cannot listen on …`',
    EXIT.failed,
    'Another program listens on the port or socket, this user may not, or this machine does not have the address.',
    'Choose another address with `--listen`, or with `--admin` if it is that one, or end the other program.',
  ],
  unexpected_error: [
    '`mcp-bridge: Error: …` with lines that begin with `at`',
    EXIT.failed,
    'An error in the bridge.',
    'Report it with these lines, and with what `--log-level debug` shows. Remove secrets first.',
  ],
}

/** Messages of commands and of a running bridge that are not in the tables of errors below. `…` stands for any text. */
const SAID: Readonly<Record<string, Advice>> = {
  'No answer yet. mcp-bridge waits …': [
    '`probe` waits for a slow server.',
    'Wait, or check that the program or address is the right one.',
  ],
  'No server was found.': [
    '`discover` found nothing in the places that it was given.',
    'Check the name of the host, file or registry. Lines with `!` say which place failed, and why.',
  ],
  'Discovery reaches public hosts over TLS only.…': [
    '`discover` does not connect to private networks and this machine.',
    'Allow the host with `--discover-allow`, or this machine with `--discover-loopback`, if you trust it.',
  ],
  'no server found yet; the bridge serves each one as soon as it finds it': [
    '`--discover` has found nothing so far.',
    'Run `mcp-bridge discover` with the same places.',
  ],
  'server unavailable; retrying on the next request': [
    'The bridge runs. This server cannot be used now.',
    'The fields `why` and `next` of the line say more. See [A server cannot be used](#a-server-cannot-be-used).',
  ],
  'server requires sign-in; the first request starts it': [
    'A person has to sign in.',
    'Run the command in the field `next`, or send a request. See [auth.md](auth.md).',
  ],
  'protocol era unknown until the first authenticated request': [
    'The server answers only with the credential of a caller.',
    'Nothing.',
  ],
  'invalid configuration; keeping the previous one': [
    'A file has changed and is invalid now.',
    'Correct it; the bridge reads it again.',
  ],
  'unusable configuration; keeping the previous one': [
    'A changed configuration is valid, but could not be used.',
    'The field `err` says why.',
  ],
  'these options need a restart': [
    'A file has changed, and the options in the field `options` were not adopted.',
    'Restart the bridge.',
  ],
  'part of the configuration was left out or changed': [
    'The file has something that the bridge does not know or support.',
    'The fields `path` and `why` say what. Remove it, or ignore the line.',
  ],
  'all users of the group can write this file or folder; if unintended, run chmod g-w': [
    'They could make the bridge start any program.',
    'Run `chmod g-w` on the file.',
  ],
  'changed certificate or key is unusable; keeping the previous one': [
    'A file that `ca`, `cert` or `key` names has changed, and cannot be used.',
    'The fields `option` and `why` say what is wrong. If only one of the two files was replaced so far, replace the other one.',
  ],
  'every user of this machine may write to …': [
    'The same for all users; the bridge does not start.',
    'Run `chmod o-w` on the file.',
  ],
  '… has changed at the same time, try again…': [
    'The client wrote its file while `wrap` or `unwrap` did.',
    'Run the command again, if need be without the client.',
  ],
  'npx runs mcp-bridge from a temporary folder…': [
    'The entry that `wrap` writes would name a folder that npx deletes.',
    'Install mcp-bridge with `npm install -g`, and run `wrap` again.',
  ],
}

const OWN_LOG = 'Look into the log of the server.'
const REPORT = 'Report it to the author of the server.'
const LIMIT = 'Raise the limit in the message, if the server needs it.'

/** What goes wrong between the bridge and a server. `…` stands for any text. */
export const CHANNEL: Readonly<Record<string, Advice>> = {
  'Cannot start …: …': [
    'The program does not exist, is not on the `PATH`, or may not be executed; or `cwd`, an argument or a variable is wrong.',
    BY_MESSAGE['Cannot start '],
  ],
  'The server exited with code …': [
    'The program ended by itself. What it wrote to stderr is shown below the message.',
    BY_MESSAGE['The server exited with code '],
  ],
  'The server exited with code 0, without an error': [
    'The program ended without an error: it may be no MCP server on stdio, or have printed how to use it.',
    BY_MESSAGE['The server exited with code 0, '],
  ],
  'The server was ended by …': [
    'A signal ended the program: SIGKILL is often the system for lack of memory, SIGSEGV and SIGABRT are crashes.',
    'Look into the log of the system and of the server.',
  ],
  'The server closed its input': ['The program closed its stdin, and has not exited.', REPORT],
  'The server closed its output': ['The program closed its stdout, and has not exited.', REPORT],
  'The server has exited': [
    'The program ended before the bridge sent this message. The log says how it ended.',
    'Run the command in a terminal.',
  ],
  'The server exited before it received the message': [
    'The program ended before anything was sent to it.',
    'Run the command in a terminal.',
  ],
  'The server does not read its input': ['The program hangs.', OWN_LOG],
  'The server hangs: it answered neither the last call nor …': [
    'A call and then a ping timed out. The bridge has ended the program or the session, and the next call starts another one.',
    OWN_LOG,
  ],
  'The server hangs: it answered neither … calls in a row nor …': ['The same, after several calls.', OWN_LOG],
  'The server in this process could not be connected': [
    'The function `serve` of the entry failed: see the `cause` of the error.',
    'Correct what it does. See [embedding.md](embedding.md#servers-in-the-same-process).',
  ],
  'The server closed the connection': [
    'A server in the same process closed its transport.',
    'See why the program closes it. The next call connects a new one.',
  ],
  'No answer to … in … ms': [
    'The server does not answer, or not as an MCP server.',
    'Check the address or command. `timeouts.initialize` and `timeouts.call` set the time.',
  ],
  'No answer to … in the … ms that the program had to start (timeouts.start)': [
    'A program is still writing or downloading, and has not answered its first request.',
    'Run the command in a terminal to see how long it takes. Raise `timeouts.start`, or install what it downloads first.',
  ],
  'No answer to … in … ms, in which the program wrote nothing (timeouts.initialize)': [
    'A program does not answer its first request, and writes nothing to stderr meanwhile.',
    'Run the command in a terminal. If it is only slow, raise `timeouts.initialize`.',
  ],
  'The server did not answer initialize with a result': [
    'It answered with something else.',
    'Check the address: most servers are at /mcp.',
  ],
  'The server answered with HTTP …': [
    'It refused.',
    'See the HTTP status in the message, and [what to do about it](#a-server-cannot-be-used).',
  ],
  'The proxy answered with HTTP …': [
    'A proxy before the server requires a user and a password, or refuses the given ones.',
    'Put them into `HTTP_PROXY`, as in `http://user:password@proxy.example:3128`.',
  ],
  'The server answered with HTTP … and … instead of a message': [
    'There is no MCP server at this address, or a proxy answers in its place.',
    BY_MESSAGE[' instead of a message'],
  ],
  'its address is neither a Streamable HTTP nor an HTTP+SSE endpoint': [
    'Both transports were tried.',
    BY_MESSAGE['neither a Streamable HTTP nor an HTTP+SSE endpoint'],
  ],
  'The server did not answer a GET with an event stream': [
    'The address is none of HTTP+SSE.',
    'Check the address: most of them are at /sse.',
  ],
  'The server opened no HTTP+SSE stream in time': [
    'The same, or a proxy holds the stream back.',
    'Turn off buffering in the proxy.',
  ],
  'The endpoint that the server named is on another origin, or too long': [
    'An HTTP+SSE server sends its clients to another origin, which the bridge does not follow.',
    'Use the other address, if you trust it.',
  ],
  'The server refused to open a session: …': [
    'It answered `initialize` with an error.',
    'The rest of the message is that of the server.',
  ],
  'The server supports 2026-07-28, which has no initialize': [
    'The server is modern, and the configuration says legacy.',
    'Remove `"era": "legacy"`.',
  ],
  'The server sent an invalid session id: it has to be 1 to 1024 visible ASCII characters': [
    'An error in the server.',
    REPORT,
  ],
  'The server sent an invalid answer: it is no JSON, or nested deeper than 256 levels': [
    'The answer cannot be read.',
    REPORT,
  ],
  'The server sent an invalid answer: it is no JSON-RPC message': ['The answer is not JSON-RPC.', REPORT],
  'The server sent too much data that is not JSON-RPC': [
    'Programs must write nothing but messages to stdout: this one writes its log there.',
    'Have the program log to stderr.',
  ],
  'The server stopped in the middle of its answer': [
    'A program wrote the beginning of a line, and nothing for 30 seconds after it.',
    'Send the request again, if it may be executed twice. Report it to the author of the server.',
  ],
  'The body of the answer is not a JSON-RPC response to the request': ['The same, over HTTP.', REPORT],
  'The server has lost the session': [
    'It was restarted, or the session has expired. The bridge opens another one.',
    'Call again, if the call may be executed twice.',
  ],
  'The answer of the server is not in the encoding that its Content-Encoding names': [
    'The server, or a proxy before it, sent something else than the header says, or broke off.',
    'Turn off compression there.',
  ],
  'The server compressed its answer (…), which the request does not allow': [
    'A proxy or the server ignores `Accept-Encoding`, and uses an encoding that the bridge does not know.',
    'Turn off compression there.',
  ],
  'The server closed the stream': ['The connection ended in the middle of an answer.', OWN_LOG],
  'The server closed the stream without an answer': ['The same, before an answer.', OWN_LOG],
  'The stream on which the server was to answer has ended': [
    'The server accepted a request with 202, to answer it on the open stream, and then ended the stream.',
    'Send the request again, if it may be executed twice.',
  ],
  'The stream failed': [
    'The same, because of the network.',
    'Check proxies between the bridge and the server for time limits.',
  ],
  'The server did not resume the stream': [
    'The server does not have the events of a broken stream any more.',
    'Send the request again, if it may be executed twice.',
  ],
  'The server sent an answer of more than … bytes (limits.answerBytes)': ['An answer is too large.', LIMIT],
  'The server wrote a line of more than … bytes (limits.lineBytes)': [
    'A message of a program is too large. Only the call that it answers has failed.',
    LIMIT,
  ],
  'The server wrote a line without an end (limits.lineBytes)': [
    'A program has written 16 times `limits.lineBytes` without a line break, and was ended.',
    'See what the program prints. The next call starts a new one.',
  ],
  'The server answers without the ids of its requests': [
    'A program answers with the id 0, null or none, so that its answers fit several requests. It was ended.',
    'Report it to its authors: an answer needs the id of its request. The next call starts a new one.',
  ],
  'The server sent an answer without the id of its request: it may answer any of … requests': [
    'A program answers with the id 0, null or none. That works for one request at a time.',
    'Report it to its authors: an answer needs the id of its request.',
  ],
  'The server sent a message of more than … bytes (limits.lineBytes)': [
    'A message of a server in the same process is too large.',
    LIMIT,
  ],
  'The server sent a stream of more than … bytes (limits.streamBytes)': [
    'All messages of one stream are too large.',
    LIMIT,
  ],
  'The answer to initialize is larger than … KiB': ['The answer is too large. There is no option for it.', REPORT],
  'The bridge has no memory left for the answer of the server (limits.memory)': [
    'Too many large messages are on their way.',
    'See [memory](operations.md#memory).',
  ],
  'The bridge has no memory left for messages (limits.memory)': [
    'The same, for a request.',
    'See [memory](operations.md#memory).',
  ],
  'The server accepts notifications too slowly, and no memory is left for more': [
    'The server does not read what clients send.',
    OWN_LOG,
  ],
  'The server has ended the subscription': ['The bridge opens it again.', 'Nothing.'],
  'The channel is closed': ['The connection ended while the request was sent.', 'Send the request again.'],
  'The bridge is shutting down': ['The bridge ends.', 'Nothing.'],
  'The request was aborted': ['The client has cancelled the request.', 'Nothing.'],
  'The answer is not needed any more': ['The client has gone.', 'Nothing.'],
}

const IN_MESSAGE = 'The message says what to correct.'
const AGAIN = 'Send the request again, after `retryAfterMs` if the error has it.'
const CHECK_FIRST = 'Check whether the call was executed, before you send it again.'
const SIGN_IN: Advice = ['Signing in to the server.', 'See [auth.md](auth.md#when-it-fails).']

/** How calls fail that the server answered: the outcome in the log and the inspector. */
export const ENDED: Readonly<Record<'tool_error' | 'error', Advice>> = {
  tool_error: [
    'The tool ran, and reports an error in its result.',
    'Read the text of the result; the arguments may be wrong.',
  ],
  error: ['The server answered with a JSON-RPC error.', 'Read the message of the error: it is that of the server.'],
}

/** The faults of the bridge. */
export const FAULTS: Readonly<Record<FaultName, Advice>> = {
  notJson: ['The body is not JSON.', IN_MESSAGE],
  invalidRequest: ['The body is not a JSON-RPC request, or not at this time.', IN_MESSAGE],
  invalidEnvelope: ['`_meta` of a modern request lacks a required key, or has a wrong one.', IN_MESSAGE],
  invalidParams: ['A parameter is missing or wrong.', IN_MESSAGE],
  invalidState: ['`requestState` has expired, was used, or belongs to another caller.', 'Call again without it.'],
  methodNotFound: [
    'The method does not exist, or the server does not offer it.',
    'Look at what `mcp-bridge probe <server>` prints.',
  ],
  headerMismatch: [
    'A header of the request contradicts its body.',
    'Correct the client, or a proxy that changes headers.',
  ],
  missingCapability: [
    'The server needs something that the client did not declare.',
    'Use a client that supports what the message names.',
  ],
  unsupportedRevision: ['The client asks for a revision that does not exist.', 'Use one of those in the message.'],
  unauthorized: [
    'The token is missing or wrong.',
    'Send `Authorization: Bearer <token>` with a token of `auth.tokens`, or sign in at one of `auth.issuers`. See [access.md](access.md).',
  ],
  insufficientScope: [
    'The token lacks a scope that `auth.scopes` or the tool requires.',
    'Clients that sign in request it by themselves. If the identity provider does not give it, its administrator has to.',
  ],
  groupsUnknown: [
    'The token leaves out the groups of its person, because there are too many.',
    'Have the identity provider send only the groups of the application. See [access.md](access.md#identity-providers).',
  ],
  foreignHost: ['The request names a host that the bridge is not known by.', 'Add the name to `allowedHosts`.'],
  foreignOrigin: [
    'A web page of another origin sent the request.',
    'Add the origin to `allowedOrigins`, if you trust it.',
  ],
  sessionNotFound: [
    'The session has ended: by the client, by `timeouts.clientIdle`, or with the bridge.',
    'Connect again. Clients do it by themselves.',
  ],
  foreignSession: [
    'The session belongs to another principal. Its client learns only that there is none.',
    'Connect again. Clients do it by themselves.',
  ],
  noSuchPath: [
    'No server is served at this path.',
    'Use a path that the bridge prints at the start: `/mcp`, or `/<name>/mcp` with several servers.',
  ],
  methodNotAllowed: ['The path does not take this HTTP method.', IN_MESSAGE],
  notAcceptable: [
    'The client does not accept the type of the answer.',
    'Send `Accept: application/json, text/event-stream`.',
  ],
  requestTimeout: ['The request arrived too slowly, or its client went away.', AGAIN],
  bodyTooLarge: [
    'The request is larger than `limits.bodyBytes` or `limits.lineBytes`.',
    'Raise the limit, if the client needs it.',
  ],
  unsupportedMediaType: ['The body is compressed, or not declared as JSON.', 'Send `Content-Type: application/json`.'],
  expectationFailed: ['The header `Expect` is not supported.', 'Leave it out.'],
  tooManyHeaders: [
    'The request has too many headers, or too large ones.',
    'Send fewer; large cookies are a usual cause.',
  ],
  tokenEnded: [
    'The token of the call has expired during the call, or is no longer accepted. The bridge has cancelled the call.',
    CHECK_FIRST,
  ],
  rateLimited: ['The caller uses its share of a bound, or is over a [rate limit](operations.md#rate-limits).', AGAIN],
  overloaded: [
    'A bound of the bridge is reached.',
    'See the message for the bound, and [limits](operations.md#limits).',
  ],
  answerLost: ['The server has answered, and the bridge had no memory for the answer.', CHECK_FIRST],
  draining: ['The bridge is shutting down.', AGAIN],
  interrupted: ['The bridge was shut down during the call.', CHECK_FIRST],
  internal: ['An error in the bridge.', 'Report it with the log line of the call.'],
  internalUnknown: [
    'An error in the bridge, after the call was sent.',
    `${CHECK_FIRST} Report it with the log line of the call.`,
  ],
  storeUnavailable: ['Redis is unreachable.', 'See [failures of Redis](operations.md#failures-of-redis-and-replicas).'],
  authUnavailable: [
    'The identity provider is unreachable, and the bridge knows no keys to check the token with.',
    'Try again later. The log line has the cause.',
  ],
  auditUnavailable: [
    'The audit log cannot be written, and `audit.required` is on.',
    'Look at the disk and the permissions of `audit.file`, or at the collector; `audit_failed` in the log has the reason.',
  ],
  auditLost: ['The server has answered, and the audit log could not be written.', CHECK_FIRST],
  suspendedCallLost: ['The bridge that held a call with an open question has ended.', CHECK_FIRST],
  replicaLost: ['The replica that executed the call has ended.', CHECK_FIRST],
  upstreamUnavailable: [
    'The server is unreachable. Nothing was executed.',
    'See [A server cannot be used](#a-server-cannot-be-used).',
  ],
  upstreamBusy: ['The server is restarting or busy.', AGAIN],
  upstreamGatewayTimeout: ['A gateway before the server timed out.', AGAIN],
  upstreamIncompatible: [
    'The server does not speak the era that it is configured or known for.',
    'Remove `era` from its entry. `mcp-bridge probe <server>` shows what it speaks.',
  ],
  upstreamAuthRequired: [
    'The server does not accept the credential.',
    'Check `headers` of the server; for sign-in see [auth.md](auth.md#when-it-fails).',
  ],
  upstreamRefused: [
    'The server refused the request before it executed anything.',
    'See the HTTP status in the message, and [what to do about it](#a-server-cannot-be-used).',
  ],
  upstreamClosed: ['The connection ended, or the program exited, during the call.', CHECK_FIRST],
  upstreamTimeout: ['The server did not answer in time.', `${CHECK_FIRST} \`timeouts.call\` sets the time.`],
  upstreamProtocol: ['The server answered with something that its revision does not allow.', REPORT],
  signInRequired: SIGN_IN,
  signInByUrl: SIGN_IN,
  signInPending: SIGN_IN,
  signInRefused: SIGN_IN,
  clientNeeded: SIGN_IN,
  authUnsafe: SIGN_IN,
  authFailed: SIGN_IN,
  scopeRefused: SIGN_IN,
  storeRefused: SIGN_IN,
}

/** The text of docs/troubleshooting.md. Throws if something by hand is not in the sources, or lacks what is in them. */
export function troubleshootingPage(): string {
  const messages = messagesByKind(texts)
  same(Object.keys(CHANNEL), messages.get('ChannelError') ?? [])
  for (const said of Object.keys(SAID))
    for (const part of said.split('…'))
      if (!texts.some((text) => text.includes(part))) throw new Error(`No message of the sources has "${part}"`)
  const causes = new Map(Object.values(CAUSES).map(({ what, next }) => [what, next ?? 'Nothing.']))
  const page = [
    '# Troubleshooting',
    '',
    '<!-- Generated by "npm run schema" from .ci/troubleshooting.ts and the messages in src. Change those. -->',
    '',
    'Messages, what they mean, and what to do. `…` stands for any text.',
    '',
    '1. `mcp-bridge probe <server>` says whether a server can be reached, and which step fails.',
    '2. `mcp-bridge check --config <file>` shows every mistake of a configuration. `mcp-bridge status` shows the bridges that run, and why a server is down.',
    '3. `--log-level debug` adds what programs write to stderr. Each line of the log has an `event`, and',
    '   [operations.md](operations.md#logs) explains all of them.',
    '',
    '## The bridge ends',
    '',
    ...table(
      ['Message', 'Exit code', '`event` in a JSON log', 'Meaning', 'What to do'],
      Object.entries(ENDS).map(([event, [first, code, ...advice]]) => [first, `${code}`, `\`${event}\``, ...advice]),
    ),
    '',
    'Exit code 0 means success, 1 also that `discover` found no server that can be used, and 130 or 143 that a signal has ended the bridge.',
    '',
    '## The bridge or a command says',
    '',
    ...table(
      ['Message', 'Meaning', 'What to do'],
      Object.entries(SAID).map(([text, advice]) => [shown(text), ...advice]),
    ),
    '',
    'For servers that `discover` refuses, see [discovery.md](discovery.md#retries-and-failures).',
    '',
    '## A server cannot be used',
    '',
    'The cause is the last part of the message of `probe`, of the log line `server_unavailable` (`why`), and of the error that clients get.',
    '',
    ...table(
      ['Cause', 'What to do'],
      [...causes].map(([what, next]) => [shown(what), plain(next)]),
    ),
    '',
    ...table(
      ['HTTP status of the server', 'What to do'],
      statuses().map(([codes, next]) => [codes, plain(next)]),
    ),
    '',
    ...table(
      ['Message', 'Meaning', 'What to do'],
      Object.entries(CHANNEL).map(([text, advice]) => [shown(text), ...advice]),
    ),
    '',
    '## Errors that clients get',
    '',
    '`reason` is in `error.data` and in the header `Mcp-Bridge-Error`. *Executed?* is `error.data.outcome`: *no* (`not_executed`) means that',
    'the call can be sent again; *unknown* means that the server may have executed it. Modern clients get the HTTP status.',
    '',
    ...table(['`reason`', 'Code', 'HTTP', 'Executed?', 'Meaning', 'What to do'], faultRows()),
    '',
    'Errors of the server and its tools reach clients as they are. The log and the [inspector](inspect.md) call them by their outcome:',
    '',
    ...table(
      ['Outcome', 'Meaning', 'What to do'],
      Object.entries(ENDED).map(([outcome, advice]) => [`\`${outcome}\``, ...advice]),
    ),
    '',
    'The messages with the errors of the bridge, but for a few that the server or the client wrote.',
    '',
    ...table(
      ['`reason`, or code and HTTP status', 'Messages'],
      (Object.keys(faults) as FaultName[]).flatMap((name) => {
        const found = messages.get(name) ?? []
        return found.length === 0 ? [] : [[nameOf(name), found.map(shown).join('<br>')]]
      }),
    ),
    '',
  ]
  return page.join('\n')
}

function faultRows(): string[][] {
  return (Object.keys(faults) as FaultName[]).map((name) => {
    const { code, status } = faults[name]
    const { reason, outcome } = faults[name] as { reason?: string; outcome?: string }
    return [reason === undefined ? '—' : `\`${reason}\``, `${code}`, `${status}`, outcome ?? 'no', ...FAULTS[name]]
  })
}

function nameOf(name: FaultName): string {
  const { code, status } = faults[name]
  const { reason } = faults[name] as { reason?: string }
  return reason === undefined ? `${code}, ${status}` : `\`${reason}\`, ${status}`
}

/** Statuses with the same advice in one row. */
function statuses(): [codes: string, next: string][] {
  const all = Object.entries(BY_STATUS)
  return [...new Set(all.map(([, next]) => next))].map((next) => [
    all.flatMap(([status, other]) => (other === next ? [status] : [])).join(', '),
    next,
  ])
}

function same(written: readonly string[], inSources: readonly string[]): void {
  const lost = inSources.filter((text) => !written.includes(text))
  const old = written.filter((text) => !inSources.includes(text))
  if (lost.length > 0 || old.length > 0)
    throw new Error(
      `.ci/troubleshooting.ts does not explain: ${lost.join(' | ')}. It explains, and there is not: ${old.join(' | ')}`,
    )
}

function shown(text: string): string {
  return `\`${text.replaceAll('|', '\\|').replaceAll('`', "'")}\``
}

/** As Markdown shows it as it is. */
function plain(text: string): string {
  return text.replace(/[<>|*_]/g, (one) => `\\${one}`)
}
