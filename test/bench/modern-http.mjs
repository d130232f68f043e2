/** The least that a modern server over HTTP can be: `node modern-http.mjs <port>`. */
import { answerTo } from './answers.mjs'
import { open, send, serve } from './http.mjs'

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
  const said = answerTo(text, 'modern')
  if (said?.method === 'subscriptions/listen') subscribe(said.id, response)
  else if (said) send(response, said)
  else response.writeHead(202).end()
})

/**
 * Agrees to tell when the list of tools changes, which it never does.
 *
 * @param {string} id
 * @param {import('node:http').ServerResponse} response
 */
function subscribe(id, response) {
  const params = `{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}}`
  open(response)
  response.write(`data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}\n\n`)
}
