import t from 'tap'
import { Guard, type GuardOptions } from '../../src/base/net/guard.js'

const failing = (reason: string) => ({ name: 'Failure', phase: 'guard', reason, transient: false })

const check = (address: string, options: GuardOptions = {}, plain = false) =>
  new Guard(options).checkAddresses('host.example', [address], plain)

t.test('allows addresses of the Internet', async (t) => {
  const open = [
    '1.1.1.1',
    '8.8.8.8',
    '93.184.215.14',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.255.255',
    '172.32.0.1',
    '192.167.255.255',
    '192.169.0.1',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450:4001:82a::200e',
    '2620:fe::fe',
  ]
  for (const address of open) t.doesNotThrow(() => check(address), address)
})

t.test('refuses all other addresses', async (t) => {
  const closed: [range: string, addresses: string[]][] = [
    ['this network', ['0.0.0.0', '0.1.2.3', '::']],
    ['loopback', ['127.0.0.1', '127.1.2.3', '127.255.255.255', '::1']],
    ['private', ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255']],
    ['carriers', ['100.64.0.1', '100.100.100.200', '100.127.255.255']],
    [
      'link-local, with the metadata of clouds',
      ['169.254.0.1', '169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
    ],
    ['other metadata services', ['168.63.129.16', 'fd00:ec2::254', '192.0.0.192']],
    ['protocol assignments', ['192.0.0.1', '192.0.0.8', '2001::1', '2001:1::1']],
    ['documentation', ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1']],
    ['benchmarks', ['198.18.0.1', '198.19.255.255', '2001:2::1']],
    ['anycast of relays', ['192.88.99.1', '192.52.193.1', '192.175.48.1', '192.31.196.1']],
    ['multicast', ['224.0.0.1', '239.255.255.250', 'ff02::1']],
    ['reserved', ['240.0.0.1', '254.1.2.3', '4000::1', 'e000::1', '5f00::1', '100::1']],
    ['broadcast', ['255.255.255.255']],
    ['unique local', ['fc00::1', 'fd12:3456:789a::1']],
    ['site-local', ['fec0::1']],
    ['IPv4 in IPv6', ['::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '::ffff:0:127.0.0.1', '::ffff:8.8.8.8']],
    ['translation', ['64:ff9b::7f00:1', '64:ff9b::127.0.0.1', '64:ff9b:1::a00:1']],
    ['tunnels', ['2002:7f00:1::', '2002:a00:1::1', '2001:0:7f00:1::1']],
    [
      'no address in its usual spelling',
      ['127.1', '0x7f.0.0.1', '2130706433', '0177.0.0.1', '', 'example.com', '[::1]'],
    ],
  ]
  for (const [range, addresses] of closed) {
    for (const address of addresses) t.throws(() => check(address), failing('internal-address'), `${range}: ${address}`)
  }
})

t.test('one refused address of a host refuses the host', async (t) => {
  const guard = new Guard({ allowed: ['10.0.0.0/8'] })
  t.doesNotThrow(() => guard.checkAddresses('host.example', ['8.8.8.8', '10.1.2.3', '2606:4700:4700::1111'], false))
  t.throws(() => guard.checkAddresses('host.example', ['8.8.8.8', '192.168.0.1'], false), failing('internal-address'))
})

t.test('the operator may allow hosts, addresses and networks', async (t) => {
  const guard = new Guard({ allowed: ['MCP.corp.example', '10.0.0.0/8', '192.168.1.1', 'fd00::/8', '::1'] })
  const may = (host: string, address: string) => guard.checkAddresses(host, [address], false)
  t.doesNotThrow(() => may('mcp.corp.example', '172.16.0.1'))
  t.doesNotThrow(() => may('other.example', '10.1.2.3'))
  t.doesNotThrow(() => may('other.example', '192.168.1.1'))
  t.doesNotThrow(() => may('other.example', 'fd12::1'))
  t.doesNotThrow(() => may('other.example', '::1'))
  t.throws(() => may('other.example', '172.16.0.1'))
  t.throws(() => may('evil.mcp.corp.example', '172.16.0.1'), 'a name below a listed one is another one')
  t.throws(() => may('other.example', '192.168.1.2'))
  t.throws(() => may('other.example', '::ffff:10.1.2.3'), 'the same address in another kind is not listed')
  for (const nonsense of ['https://example.com', 'example.com/path', 'example.com:443', 'a b', '10.0.0.0/33', ''])
    t.throws(() => new Guard({ allowed: [nonsense] }), TypeError, nonsense)
})

t.test('allows the loopback in development only', async (t) => {
  const guard = new Guard({ allowLoopback: true })
  t.doesNotThrow(() => guard.checkName('localhost'))
  t.doesNotThrow(() => guard.checkAddresses('localhost', ['127.0.0.1', '::1'], true))
  t.doesNotThrow(() => guard.checkAddresses('localhost', ['127.0.0.1'], false))
  t.throws(() => guard.checkAddresses('host.example', ['10.0.0.1'], false), failing('internal-address'))
  t.throws(() => guard.checkAddresses('host.example', ['8.8.8.8'], true), failing('plain-http'))
  t.throws(() => guard.checkAddresses('host.example', ['127.0.0.1', '8.8.8.8'], true), failing('plain-http'))
  const listed = new Guard({ allowed: ['host.example', '127.0.0.0/8'] })
  t.throws(() => listed.checkAddresses('host.example', ['127.0.0.1'], true), failing('plain-http'))
})

t.test('resolves names of this machine without a request', async (t) => {
  const names = [
    'localhost',
    'foo.localhost',
    'ip6-localhost',
    'ip6-loopback',
    'localhost.localdomain',
    'a.localdomain',
  ]
  for (const name of names) t.throws(() => new Guard().checkName(name), failing('internal-name'), name)
  for (const name of ['localhost.example', 'mylocalhost', 'example.com'])
    t.doesNotThrow(() => new Guard().checkName(name))
  t.doesNotThrow(() => new Guard({ allowed: ['localhost'] }).checkName('localhost'))
})
