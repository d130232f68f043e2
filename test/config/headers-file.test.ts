/** A file with headers: what counts as one, and how it goes with the headers of the entry. */
import t from 'tap'
import { headersIn } from '../../src/config/headers-file.js'
import { examineOffline, parseSettings } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { check } from '../support/check.js'
import { temporaryFile } from '../support/folder.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

t.test('a file has a header in each line, and comments', async (t) => {
  const cases: [text: string, headers: object, wrong?: number[]][] = [
    ['', {}],
    ['X-A: 1', { 'X-A': '1' }],
    ['\uFEFFX-A:1\r\n\r\n# X-B: 2\r\n  # x\n X-C :  a: b  \n', { 'X-A': '1', 'X-C': 'a: b' }],
    ['X-A: 1\nX-A: 2', { 'X-A': '2' }],
    ['X-A:', { 'X-A': '' }],
    ['secret\nX-A: 1\n: x', { 'X-A': '1' }, [1, 3]],
  ]
  for (const [text, headers, wrong = []] of cases) t.same(headersIn(text), { headers, wrong }, JSON.stringify(text))
})

t.test('headers of the entry win, and references are replaced', async (t) => {
  const read = (path: string) => {
    if (path !== '/h') throw new Error('not there')
    return 'x-own: file\nAuthorization: Bearer ${TOKEN}\nX-Plain: $${A}\n'
  }
  const url = 'https://a.example/mcp'
  const server = { url, headers: { 'X-Own': 'entry' }, headersFile: '${H}' }
  const settings = parseSettings({ mcpServers: { a: server } }, { env: { H: '/h', TOKEN: 't' }, read })
  t.match(settings.mcpServers['a'], {
    headers: { 'X-Own': 'entry', Authorization: 'Bearer t', 'X-Plain': '${A}' },
  })
  t.notOk('x-own' in (settings.mcpServers['a'] as { headers: object }).headers)
  const offline = examineOffline({ mcpServers: { a: { url, headersFile: '/gone' } } }, { env: {}, read })
  t.same(offline.issues, [], 'files are not read offline')
})

t.test('a mistake is named with its line, and without what is there', async (t) => {
  const headers = temporaryFile(t, 'headers', 'X-A: 1\nBearer canary\n')
  const fileOf = (headersFile: string) =>
    temporaryFile(t, 'mcp.json', JSON.stringify({ mcpServers: { a: { url: 'https://a.example/mcp', headersFile } } }))
  const { said } = check(fileOf(headers))
  t.match(said, `mcpServers.a.headersFile is not like "Name: value" in line 2 of the file ${headers}`)
  t.notMatch(said, 'canary')
  t.match(check(fileOf('/nonexistent/h')).said, /headersFile cannot read \/nonexistent\/h/)
})

t.test('the server gets the headers of the file', async (t) => {
  const modern = await ModernHttp.start(t)
  const headersFile = temporaryFile(t, 'headers', '# for the server\nX-Key: of the file\n')
  const { url } = await startBridge(t, { url: modern.url, headersFile })
  t.equal((await call(url, 'tools/list')).status, 200)
  t.ok(modern.received.length > 0)
  for (const { headers } of modern.received) t.equal(headers['x-key'], 'of the file')
})
