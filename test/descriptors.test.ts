/** The program when the system gives it no more file descriptors. */
import { connect, type Socket } from 'node:net'
import { execPath, platform } from 'node:process'
import t from 'tap'
import { main, says, startProgram } from './support/cli.js'
import { until, untilFound } from './support/eventually.js'
import { call } from './support/modern.js'
import { PlainHttp, sendText } from './support/plain-http.js'

const LIMIT = 100
const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const skip = platform === 'linux' ? false : 'needs ulimit'

t.test('without free file descriptors, one line says so and names the next step', { skip }, async (t) => {
  // Each request needs a connection of its own.
  const server = await PlainHttp.start(t, ({ message }, response) =>
    sendText(response, `{"jsonrpc":"2.0","id":${message?.['id']},"result":${DISCOVERED}}`, { connection: 'close' }),
  )
  const shell = ['sh', '-c', `ulimit -n ${LIMIT} && exec "$0" "$@"`, execPath, main] as const
  const args = ['--upstream', server.url, '--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json']
  const program = startProgram(t, args, {}, [...shell])
  const [, url = ''] = await says(program, /"url":"(http:[^"]+)"/)
  await says(program, /"event":"server_ready"/)
  const { port } = new URL(url)
  const sockets: Socket[] = []
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  // The last ones are closed at once, because there are no more.
  let closed = 0
  const fill = () => {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    socket.once('close', () => closed++)
    sockets.push(socket)
  }
  for (let n = 0; n < 2 * LIMIT; n++) fill()
  await until(() => closed > 0, 'the first connection that is not taken')
  // One is free for a client.
  sockets.find(({ destroyed }) => !destroyed)?.destroy()
  const fail = () =>
    untilFound(async () => {
      const answer = await call(url, 'tools/list').catch(() => undefined)
      return answer?.message.error && answer
    }, 'a call that needs one more')
  const why = /too many open files/
  for (let n = 0; n < 3; n++) t.match(await fail(), { status: 502, message: { error: { message: why } } })
  const lines = (pattern: RegExp) =>
    program
      .stderr()
      .split('\n')
      .filter((line) => pattern.test(line))
  await until(() => lines(/"event":"call".*too many open files/).length >= 3, 'the lines of the calls')
  t.equal(lines(/"event":"descriptors_exhausted"/).length, 1)
  t.match(lines(/"event":"descriptors_exhausted"/)[0], /ulimit -n/)
})
