/** What the minimal servers over HTTP have in common: requests are read whole, and answers sent in one piece or two. */
import { createServer } from 'node:http'

/** Longer answers are sent as the bytes they are kept in. */
const LONG = 64 * 1024

/** @type {Set<import('node:http').ServerResponse>} */
const listening = new Set()
const CHANGED = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
// A proxy is told so to collect its garbage. A bare server is a proxy there: its program collects its own.
if (!globalThis.gc)
  process.on('SIGUSR2', () => {
    for (const response of listening) response.write(CHANGED)
  })

/**
 * Listens until the process ends.
 *
 * @param {string | undefined} port
 * @param {(request: import('node:http').IncomingMessage, text: string, response: import('node:http').ServerResponse) => void} take
 */
export function serve(port, take) {
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (/** @type {string} */ piece) => {
      text += piece
    })
    request.on('end', () => take(request, text, response))
  })
  server.keepAliveTimeout = 60_000
  server.listen(Number(port), '127.0.0.1')
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {import('./answers.mjs').Answer} said
 * @param {Record<string, string | number>} more Headers beside those that every answer has.
 */
export function send(response, { front, rest, bytes }, more = {}) {
  const length = front.length + bytes.length
  response.writeHead(200, { 'content-type': 'application/json', ...more, 'content-length': length })
  if (bytes.length < LONG) {
    response.end(front + rest)
  } else {
    response.write(front)
    response.end(bytes)
  }
}

/**
 * Sends an answer as JSON; with notifications before it, as events, each in a write of its own.
 *
 * @param {import('node:http').ServerResponse} response
 * @param {import('./answers.mjs').Answer & { progress: string[] }} said
 */
export function sendInSteps(response, said) {
  if (said.progress.length === 0 && !said.streamed) {
    send(response, said)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (said.streamed) {
    response.write(`event: message\ndata: ${said.front}`)
    response.write(said.bytes)
    response.end('\n\n')
    return
  }
  const left = [...said.progress, said.front + said.rest].map((message) => `event: message\ndata: ${message}\n\n`)
  const step = () => {
    response.write(left.shift())
    if (left.length > 0) setImmediate(step)
    else response.end()
  }
  step()
}

/**
 * Opens a stream of events, which stays open. It begins with a comment: proxies keep the headers to themselves until
 * something follows them.
 *
 * @param {import('node:http').ServerResponse} response
 */
export function open(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n')
  listening.add(response)
  response.once('close', () => listening.delete(response))
}
