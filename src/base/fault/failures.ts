/**
 * What goes wrong between the bridge and a server, beside failed connections: what happened, and what to do next. Texts of messages are
 * Markdown, with links relative to docs/troubleshooting.md.
 */

import { REPORT } from './faults.js'

/** `told`: operators are told what to do next beside the message, too, so that is plain text. */
export type Explained = readonly [what: string, next: string, told?: 'told']

/** The end of advice about a credential, for a server that is known by no name. */
export const SIGN_IN = ', or sign in with mcp-bridge login <server>'
const CREDENTIAL = `The server requires a credential, or does not accept the one that it got. Give it a credential with --header "Authorization: Bearer …" or "headers" in its entry${SIGN_IN}.`
const HOST = 'If it says that it does not allow this host, use the host name that it allows, such as localhost.'
const PATH = 'Check the path of the address: most servers are at /mcp, HTTP+SSE servers at /sse.'
const ENDED =
  'The server has removed this endpoint. If it was its HTTP+SSE endpoint, use its Streamable HTTP address instead: most servers are at /mcp. Then leave out sse+ and "type": "sse".'
/** Of all other statuses from 500. */
export const ITS_LOG = 'The server, or a proxy before it, has failed. Look for the reason in its own log.'
/** Of answers that did not come in time. */
export const SLOW =
  'If the server needs longer, raise timeouts.initialize; for a program that writes to stderr while it starts, timeouts.start.'
const BUSY = 'The server is busy or down: try again later.'

/** By the HTTP status with which the server refuses, in plain text: what to do next. */
export const STATUSES: Readonly<Record<number, string>> = {
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

const OWN_LOG = 'Look into the log of the server.'
const LIMIT = 'Raise the limit in the message, if the server needs it.'

/** By the message. `…` stands for any text. */
export const MESSAGES: Readonly<Record<string, Explained>> = {
  'Cannot start …: …': [
    'The program does not exist, is not on the `PATH`, or may not be executed; or `cwd`, an argument or a variable is wrong.',
    'Correct what the message names. A program has to be on the PATH of the bridge, or given with its path. Run the command in a terminal, in the folder where the bridge runs.',
    'told',
  ],
  'The server exited with code …': [
    'The program ended by itself. What it wrote to stderr is shown below the message.',
    'Run the command in a terminal. Programs get only a few environment variables: see "env" and "passEnvironment".',
    'told',
  ],
  'The server exited with code 0, without an error': [
    'The program ended without an error: it may be no MCP server on stdio, or have printed how to use it.',
    'Run the command in a terminal: an MCP server on stdio prints nothing and waits. It may need an argument such as "stdio".',
    'told',
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
  'The server hangs: it answered neither … nor …': [
    'A call, or several in a row, and then a ping timed out. The bridge has ended the program or the session, and the next call starts another one.',
    OWN_LOG,
  ],
  'The bridge has closed its connections to the server': [
    'The configuration has changed, or the bridge has ended, and a request was not over in time. The server may have acted on it.',
    'See what the server has done, and ask again if it is not done.',
  ],
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
    PATH,
    'told',
  ],
  'its address is neither a Streamable HTTP nor an HTTP+SSE endpoint': ['Both transports were tried.', PATH, 'told'],
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
  'The server has no stream': [
    'The server has answered the GET of a client with something else than a stream.',
    'Nothing: messages of the server itself come with its answers, or not at all.',
  ],
  'The server did not resume the stream': [
    'The server does not have the events of a broken stream any more.',
    'Send the request again, if it may be executed twice.',
  ],
  'The server sent an answer of more than … bytes (limits.answerBytes), also where results.cut is set': [
    'An answer is too large.',
    `${LIMIT} With "results": { "cut": "64 KiB" }, models get [long results of tools in parts](results.md).`,
  ],
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
    'See [memory](limits.md#memory).',
  ],
  'The bridge has no memory left for messages (limits.memory)': [
    'The same, for a request.',
    'See [memory](limits.md#memory).',
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

/** Of lines anywhere in what a program wrote. */
export const PORT_TAKEN =
  'Another process has this port: end it, or give the program another port. If that process is the same program for another client, set "process": "single" in its entry (--process single): then all clients share one.'
export const TAKEN =
  /EADDRINUSE|\baddress (?:is )?(?:already )?in use|\bport\b.{0,80}\b(?:in use|taken|occupied|allocated)|only one usage of each socket address/i

/** By the last output of a program, in plain text: what to do next. */
export const OUTPUTS: readonly (readonly [reason: RegExp, next: string])[] = [
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

/** What to do next, by the most specific of these texts in a message. `…` stands for any text. */
export function nextIn(message: string, table: Iterable<readonly [text: string, next: string]>): string | undefined {
  const found = [...table].flatMap(([text, next]) => {
    const parts = text.split('…').filter((part) => part.trim() !== '')
    return contains(message, parts) ? [{ length: parts.join('').length, next }] : []
  })
  return found.toSorted((one, other) => other.length - one.length)[0]?.next
}

/** Whether a text has these parts in this order. */
function contains(text: string, parts: readonly string[]): boolean {
  let from = 0
  for (const part of parts) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return true
}
