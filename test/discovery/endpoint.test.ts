import t from 'tap'
import { parseAddress } from '../../src/base/net/address.js'
import { canonical, httpEndpoint, stdioEndpoint } from '../../src/config/endpoint.js'

const key = (address: string) => canonical(httpEndpoint(address))

t.test('an endpoint in any spelling has the same key', async (t) => {
  const same: [spellings: string[]][] = [
    [
      [
        'https://example.com/mcp',
        'HTTPS://example.com/mcp',
        'https://EXAMPLE.com/mcp',
        'https://example.com:443/mcp',
        'https://example.com/mcp/',
        'https://example.com/mcp#tools',
        'https://example.com/mcp?',
        'https://example.com/./mcp',
        'https://example.com/a/../mcp',
        'https://example.com/a/%2e%2E/mcp',
        'https://example.com/%6dcp',
        'https://example.com/%6Dcp',
        'https://example.com./mcp',
        'https://user:password@example.com/mcp',
        'https:example.com/mcp',
      ],
    ],
    [['https://example.com', 'https://example.com/', 'https://example.com:443', 'https://example.com/?#']],
    [['http://example.com/mcp', 'http://example.com:80/mcp']],
    [['https://bücher.example/mcp', 'https://BÜCHER.example/mcp', 'https://xn--bcher-kva.example/mcp']],
    [['https://faß.example/', 'https://xn--fa-hia.example/']],
    [['https://example.com/a%2fb', 'https://example.com/a%2Fb']],
    [['https://example.com/%7euser', 'https://example.com/~user']],
    [
      [
        'http://127.0.0.1:8080/mcp',
        'http://2130706433:8080/mcp',
        'http://0x7f.1:8080/mcp',
        'http://0177.0.0.1:8080/mcp',
      ],
    ],
    [['http://[::1]:8080/mcp', 'http://[0:0:0:0:0:0:0:1]:8080/mcp', 'http://[::0001]:8080/mcp']],
    [['https://example.com/mcp?a=1&b=%20', 'https://example.com/mcp/?a=1&b=%20#x']],
  ]
  for (const [spellings] of same) {
    for (const spelling of spellings) t.equal(key(spelling), key(spellings[0] as string), spelling)
  }
})

t.test('different endpoints have different keys', async (t) => {
  const different = [
    'https://example.com/mcp',
    'http://example.com/mcp',
    'https://example.com:8443/mcp',
    'https://example.com/MCP',
    'https://example.com/mcp/a',
    'https://example.com/mcp?a=1',
    'https://example.com/mcp?a=1&b=2',
    'https://example.com/mcp?b=2&a=1',
    'https://example.com/mcp?a=%31',
    'https://example.com//mcp',
    'https://example.com/a%2Fb',
    'https://example.com/a/b',
    'https://www.example.com/mcp',
    'https://exаmple.com/mcp', // the а is Cyrillic
    'https://example.com/',
  ]
  t.equal(new Set(different.map(key)).size, different.length)
})

t.test('the address to connect to keeps its last slash and its query', async (t) => {
  t.equal(httpEndpoint('https://Example.com:443/mcp/?a=1#b').url, 'https://example.com/mcp/?a=1')
  t.equal(httpEndpoint('https://me:secret@example.com/mcp').url, 'https://example.com/mcp')
})

t.test('commands are equal if their arguments are', async (t) => {
  const commandKey = (command: string, ...args: string[]) => canonical(stdioEndpoint(command, args))
  t.equal(commandKey('npx', '-y', 'server'), commandKey('npx', '-y', 'server'))
  const different = [
    commandKey('npx', '-y', 'server'),
    commandKey('npx', '-y server'),
    commandKey('npx -y', 'server'),
    commandKey('npx', '-y', 'server', ''),
    commandKey('npx', 'server', '-y'),
    commandKey('NPX', '-y', 'server'),
    commandKey('npx', '-y', 'server","x'),
  ]
  t.equal(new Set(different).size, different.length)
  t.not(canonical(stdioEndpoint('https://example.com/')), key('https://example.com/'))
})

t.test('refuses an address that parsers read differently', async (t) => {
  const cases: [name: string, address: string, reason: string][] = [
    ['nothing', '', 'malformed'],
    ['no scheme', 'example.com/mcp', 'malformed'],
    ['a backslash', 'https://example.com\\@127.0.0.1/', 'malformed'],
    ['a tab in the host', 'https://exam\tple.com/', 'malformed'],
    ['a line break', 'https://example.com/\nHost: other', 'malformed'],
    ['a space at the end', 'https://example.com/ ', 'malformed'],
    ['a NUL', 'https://example.com\u0000.evil.example/', 'malformed'],
    ['a port that there is not', 'https://example.com:65536/', 'malformed'],
    ['a host that is too long', `https://${'a.'.repeat(150)}example/`, 'malformed'],
    ['a label that is too long', `https://${'a'.repeat(64)}.example/`, 'malformed'],
    ['an empty label', 'https://example..com/', 'malformed'],
    ['two dots at the end', 'https://example.com../', 'malformed'],
    ['an address that is too long', `https://example.com/${'a'.repeat(3_000)}`, 'malformed'],
    ['five numbers', 'https://1.2.3.4.5/', 'malformed'],
    ['a file', 'file:///etc/passwd', 'scheme'],
    ['a web socket', 'wss://example.com/mcp', 'scheme'],
    ['a script', 'javascript:alert(1)', 'scheme'],
  ]
  for (const [name, address, reason] of cases)
    t.throws(() => httpEndpoint(address), { name: 'Failure', phase: 'url', reason, transient: false }, name)
  t.equal(parseAddress('https://localhost./').hostname, 'localhost')
})
