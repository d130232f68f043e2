/** The least that a legacy server over Streamable HTTP can be: `node legacy-http.mjs <port>`. */
import { createServer } from 'node:http'
import { answerTo } from './answers.mjs'

/** Longer answers are sent as the bytes they are kept in. */
const LONG = 64 * 1024
/** @type {Set<string | string[] | undefined>} */
const sessions = new Set()

const server = createServer((request, response) => {
  if (request.method !== 'POST') {
    const ended = request.method === 'DELETE' && sessions.delete(request.headers['mcp-session-id'])
    response.writeHead(ended ? 200 : 405).end()
    return
  }
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (/** @type {string} */ piece) => {
    text += piece
  })
  request.on('end', () => answer(text, request, response))
})

server.keepAliveTimeout = 60_000
server.listen(Number(process.argv[2]), '127.0.0.1')

/**
 * @param {string} text
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
function answer(text, request, response) {
  const said = answerTo(text)
  /** @type {Record<string, string | number>} */
  const headers = { 'content-type': 'application/json' }
  if (said?.method === 'initialize') {
    const session = `session-${sessions.size + 1}`
    sessions.add(session)
    headers['mcp-session-id'] = session
  } else if (said?.rest.startsWith('"error"')) {
    // `server/discover`, which comes without a session.
  } else if (!sessions.has(request.headers['mcp-session-id'])) {
    response.writeHead(404).end()
    return
  }
  if (!said) {
    response.writeHead(202).end()
    return
  }
  headers['content-length'] = said.front.length + said.bytes.length
  response.writeHead(200, headers)
  if (said.bytes.length < LONG) {
    response.end(said.front + said.rest)
  } else {
    response.write(said.front)
    response.end(said.bytes)
  }
}
