/** The least that a legacy server over Streamable HTTP can be: `node legacy-http.mjs <port>`. */
import { answerTo } from './answers.mjs'
import { open, send, sendInSteps, serve } from './http.mjs'

/** @type {Set<string | string[] | undefined>} */
const sessions = new Set()
let lastSession = 0

serve(process.argv[2], (request, text, response) => {
  const session = request.headers['mcp-session-id']
  if (request.method === 'POST') answer(answerTo(text, 'legacy', request.url), session, response)
  else if (!sessions.has(session)) response.writeHead(405).end()
  else if (request.method === 'GET') open(response)
  else response.writeHead(sessions.delete(session) ? 200 : 404).end()
})

/**
 * @param {ReturnType<typeof answerTo>} said
 * @param {string | string[] | undefined} session
 * @param {import('node:http').ServerResponse} response
 */
function answer(said, session, response) {
  if (said?.method === 'initialize') {
    const opened = `session-${++lastSession}`
    sessions.add(opened)
    send(response, said, { 'mcp-session-id': opened })
  } else if (said?.rest.startsWith('"error"')) {
    // `server/discover`, which comes without a session.
    send(response, said)
  } else if (!sessions.has(session)) {
    response.writeHead(404).end()
  } else if (said) {
    sendInSteps(response, said)
  } else {
    response.writeHead(202).end()
  }
}
