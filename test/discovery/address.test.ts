/** What people mean by what they give. */
import t from 'tap'
import { meaningOf } from '../../src/services/discovery/sources/address.js'

t.test('the form of an address determines its kind', async (t) => {
  const host = (origin: string) => ({ kind: 'host', origin })
  const server = (url: string, transport?: string) => ({
    kind: 'server',
    finding: { endpoint: { kind: 'http', url }, entry: { url }, transport, source: 'address', runnable: true },
  })
  const command = (program: string, ...args: string[]) => ({
    kind: 'server',
    finding: { endpoint: { kind: 'stdio', command: program, args }, entry: { command: program, args }, runnable: true },
  })
  const file = (path: string) => ({ kind: 'file', path })
  const cases: [given: string, meant: object][] = [
    ['example.com', host('https://example.com')],
    ['EXAMPLE.com', host('https://example.com')],
    ['example.com.', host('https://example.com')],
    [' example.com ', host('https://example.com')],
    ['example.com:8443', host('https://example.com:8443')],
    ['example.com/', host('https://example.com')],
    ['bücher.example', host('https://xn--bcher-kva.example')],
    ['localhost', host('https://localhost')],
    ['localhost:3000', host('https://localhost:3000')],
    ['intranet:8443', host('https://intranet:8443')],
    ['192.168.1.1', host('https://192.168.1.1')],
    ['[::1]:8443', host('https://[::1]:8443')],
    ['https://example.com', host('https://example.com')],
    ['https://example.com/', host('https://example.com')],
    ['https://example.com/.well-known/mcp.json', host('https://example.com')],
    ['http://localhost:3000', host('http://localhost:3000')],
    ['example.com/mcp', server('https://example.com/mcp')],
    ['https://example.com/mcp', server('https://example.com/mcp')],
    ['https://Example.com:443/mcp/?a=b', server('https://example.com/mcp/?a=b')],
    ['https://example.com/?tools=a', server('https://example.com/?tools=a')],
    ['http://127.0.0.1:8080/mcp', server('http://127.0.0.1:8080/mcp')],
    ['sse+https://example.com/sse', server('https://example.com/sse', 'sse')],
    ['sse+https://example.com', server('https://example.com/', 'sse')],
    ['registry:weather', { kind: 'registry', query: 'weather' }],
    ['registry: github ', { kind: 'registry', query: 'github' }],
    ['registry:io.github.user/weather', { kind: 'registry', query: 'io.github.user/weather' }],
    ['stdio:npx -y some-server', command('npx', '-y', 'some-server')],
    ['stdio:"/my programs/server" --flag "a b"', command('/my programs/server', '--flag', 'a b')],
    ['stdio:server', command('server')],
    ['npx -y some-server', command('npx', '-y', 'some-server')],
    ['./server.sh --stdio', command('./server.sh', '--stdio')],
    ['./mcp.json', file('./mcp.json')],
    ['../mcp.json', file('../mcp.json')],
    ['mcp.json', file('mcp.json')],
    ['.mcp.json', file('.mcp.json')],
    ['/etc/mcp/servers', file('/etc/mcp/servers')],
    ['~/.cursor/mcp.json', file('~/.cursor/mcp.json')],
    ['.cursor/mcp.json', file('.cursor/mcp.json')],
    ['C:\\Users\\me\\mcp.json', file('C:\\Users\\me\\mcp.json')],
    ['settings.jsonc', file('settings.jsonc')],
    ['file:servers', file('servers')],
    ['file:///etc/servers', file('/etc/servers')],
  ]
  for (const [given, meant] of cases) t.match(meaningOf(given), meant, given)
})

t.test('names are derived from addresses', async (t) => {
  const cases: [given: string, name: string][] = [
    ['https://mcp.example.com/mcp', 'mcp.example.com'],
    ['stdio:npx -y @modelcontextprotocol/server-memory', 'server-memory'],
    ['stdio:/usr/local/bin/weather-server --verbose', 'weather-server'],
    ['stdio:C:\\\\tools\\\\server.exe', 'server'],
    ['stdio:node build/index.js', 'index'],
    ['stdio:npx', 'npx'],
  ]
  for (const [given, name] of cases) {
    const meaning = meaningOf(given)
    t.equal(meaning.kind === 'server' && meaning.finding.name, name, given)
  }
})

t.test('refuses an ambiguous address', async (t) => {
  const cases: [given: string, reason: string][] = [
    ['', 'malformed'],
    ['server', 'malformed'],
    ['ftp://example.com/', 'malformed'],
    ['example.com:port', 'malformed'],
    ['@example.com', 'malformed'],
    ['stdio:', 'malformed'],
    ['https://', 'malformed'],
    ['https://exa\\mple.com/', 'malformed'],
    ['https://me:secret@example.com/mcp', 'credentials'],
    ['https://me@example.com/mcp', 'credentials'],
    ['me@example.com/mcp', 'malformed'],
  ]
  for (const [given, reason] of cases) {
    t.throws(() => meaningOf(given), { name: 'Failure', phase: 'url', reason }, given)
  }
})
