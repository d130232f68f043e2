/** Addresses as proxies write them. */
import t from 'tap'
import { addressOf, plainAddress } from '../../src/clients/plugins/address.js'
import { startBridge } from '../support/bridge.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const rows: [address: string, written: string[]][] = [
  [
    '192.0.2.7',
    [
      '192.0.2.7',
      '192.0.2.7:1',
      '192.0.2.7:65535',
      '"192.0.2.7:4711"',
      '::ffff:192.0.2.7',
      '[::FFFF:c000:207]:80',
      '64:ff9b::192.0.2.7',
      '[64:FF9B:0:0::c000:207]:80',
    ],
  ],
  [
    '2001:db8::1',
    [
      '2001:db8::1',
      '2001:DB8:0:0::1',
      '[2001:db8::1]',
      '[2001:db8::1]:443',
      '"[2001:db8::1]:443"',
      '2001:0db8:0000:0000:0000:0000:0000:0001',
    ],
  ],
  ['fe80::1', ['fe80::1', 'fe80::1%eth0', '[fe80::1%eth0]:80']],
  [
    'unknown',
    [
      'unknown',
      '_hidden',
      '"',
      '[',
      '[]',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '256.1.1.1',
      'a.example',
      '1.2.3.4:x',
      '[1.2.3.4]:x',
      '::g',
      '-',
      'for=1.2.3.4',
    ],
  ],
]
for (const [address, written] of rows)
  t.test(`all ways to write ${address} are one address`, async (t) => {
    for (const one of written) t.equal(plainAddress(one), address, one)
  })

t.test('addresses of one IPv6 network of 64 bits are one client, and those of IPv4 are each one', async (t) => {
  const rows: [ip: string | undefined, address: string][] = [
    ['2001:db8:1:2::', '2001:db8:1:2'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['64:ff9b::c000:207', '192.0.2.7'],
    ['64:ff9b:1::c000:207', '64:ff9b:1:0'],
    ['192.0.2.7', '192.0.2.7'],
    [undefined, 'none'],
  ]
  for (const [ip, address] of rows) t.equal(addressOf({ ip }), address)
})

const TOKENS = { alice: 'token-of-alice-0123456789' }

t.test('neither a port nor garbage makes another caller of somebody with wrong tokens', async (t) => {
  const { url, log } = await startBridge(t, legacyStdio(t).server, {
    auth: { tokens: TOKENS },
    limits: { wrongTokensPerMinute: 2 },
    trustedProxies: ['127.0.0.1', '198.51.100.0/24'],
  })
  const wrong = async (address: string) => {
    const headers = { authorization: 'Bearer wrong-token-0123456789', 'x-forwarded-for': address }
    return (await call(url, 'tools/list', {}, { headers })).status
  }
  for (const ways of [
    ['192.0.2.7:1001', '192.0.2.7:1002', '192.0.2.7'],
    ['203.0.113.1, 192.0.2.8', '203.0.113.2,192.0.2.8:7', '203.0.113.3, , "192.0.2.8"'],
    ['[2001:db8::1]:1001', '2001:db8::1', '[2001:db8::1]'],
    ['garbage', 'unknown', '_other'],
    ['192.0.2.9, 198.51.100.7:1001', '192.0.2.9:2, [::ffff:198.51.100.8]:80', '192.0.2.9'],
  ]) {
    const statuses: number[] = []
    for (const one of ways) statuses.push(await wrong(one))
    t.same(statuses, [401, 401, 429], ways.join(' | '))
  }
  t.same(
    [await wrong('192.0.2.10:1'), await wrong('192.0.2.11:1')],
    [401, 401],
    'other callers have counts of their own',
  )
  const from = log.map((line) => line['from']).filter((one) => one !== undefined)
  t.ok(from.includes('192.0.2.9'), 'an address behind two trusted proxies is found')
})

t.test('without trusted proxies, nobody can say where it is', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server, {
    auth: { tokens: TOKENS },
    limits: { wrongTokensPerMinute: 2 },
  })
  const statuses: number[] = []
  for (const address of ['192.0.2.1', '192.0.2.2:5', 'x']) {
    const headers = { authorization: 'Bearer wrong-token-0123456789', 'x-forwarded-for': address }
    statuses.push((await call(url, 'tools/list', {}, { headers })).status)
  }
  t.same(statuses, [401, 401, 429])
})
