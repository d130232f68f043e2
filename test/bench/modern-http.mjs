/** The least that a modern server over HTTP can be: `node modern-http.mjs <port>`. */
import { acknowledgement, answerTo } from './answers.mjs'
import { open, sendInSteps, serve } from './http.mjs'

const VERSION = '2026-07-28'

serve(process.argv[2], (request, text, response) => {
  if (request.method !== 'POST') {
    response.writeHead(405).end()
    return
  }
  if (request.headers['mcp-protocol-version'] !== VERSION) {
    response.writeHead(400).end()
    return
  }
  const said = answerTo(text, 'modern', request.url)
  if (said?.method === 'subscriptions/listen') subscribe(said.id, response)
  else if (said) sendInSteps(response, said)
  else response.writeHead(202).end()
})

/**
 * @param {string} id
 * @param {import('node:http').ServerResponse} response
 */
function subscribe(id, response) {
  open(response)
  response.write(`data: ${acknowledgement(id)}\n\n`)
}
