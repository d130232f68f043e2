/** Hosts and origins that requests may name: each is allowed as it is written, or refused with the right spelling. */
import t from 'tap'
import { examine } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { run } from '../support/cli.js'
import { temporaryFile } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, send } from '../support/modern.js'

const LEAST = { mcpServers: { a: { url: 'https://a.example/mcp' } } }

function issueOf(option: string, value: string): string {
  const { issues } = examine({ ...LEAST, [option]: [value] }, { env: {}, read: () => '' })
  return issues.find(({ path }) => path === `${option}.0`)?.message ?? 'none'
}

t.test('a host that no request can name is refused with the right spelling', async (t) => {
  const rows: Record<string, string> = {
    'https://h.example': 'h.example',
    'https://h.example/': 'h.example',
    'https://h.example:8443/mcp': 'h.example:8443',
    'http://user:secret@h.example': 'h.example',
    'https://*.example.org': '*.example.org',
    'h.example/mcp': 'h.example',
    'h.example:8443/': 'h.example:8443',
    'h.example:*': 'h.example',
    'localhost:*': 'localhost',
    '[fd00::1]:*': '[fd00::1]',
    'fd00::1': '[fd00::1]',
    '::1': '[::1]',
    '::ffff:10.0.0.1': '[::ffff:10.0.0.1]',
    'http://fd00::1/': '[fd00::1]',
    ' h.example': 'h.example',
    '"h.example"': 'h.example',
    "'h.example:8443'": 'h.example:8443',
    '"https://h.example/mcp"': 'h.example',
    '.example.org': '*.example.org',
    '.example.org:8443': '*.example.org:8443',
  }
  for (const [written, meant] of Object.entries(rows)) {
    t.ok(issueOf('allowedHosts', written).endsWith(`: write "${meant}"`), written)
    t.equal(issueOf('allowedHosts', meant), 'none', meant)
    t.notMatch(issueOf('allowedHosts', written), /secret/)
  }
  t.match(issueOf('allowedHosts', '*'), /all hosts is not supported/)
  t.match(issueOf('allowedHosts', 'a.example, b.example'), /write each host as an element of its own/)
  for (const wrong of [
    '',
    'a.*.example',
    '*.10.0.0.1',
    '*.',
    'h:0',
    'h:65536',
    'h:x',
    'a_b c',
    '[fe80::1%eth0]',
    '[fd00::1',
  ])
    t.match(issueOf('allowedHosts', wrong), /^has to be a host, such as/, wrong)
})

t.test('a trusted proxy with brackets or quotes is refused with the right spelling', async (t) => {
  const rows = { '[::1]': '::1', '[fd00::]/8': 'fd00::/8', '"10.0.0.0/8"': '10.0.0.0/8', ' ::1 ': '::1' }
  for (const [written, meant] of Object.entries(rows)) {
    t.ok(issueOf('trustedProxies', written).endsWith(`: write "${meant}"`), written)
    t.equal(issueOf('trustedProxies', meant), 'none', meant)
  }
  for (const wrong of ['proxy.example', '10.0.0.0/33', '10.0.0.1:80', '*', ''])
    t.match(issueOf('trustedProxies', wrong), /^has to be an IP address or a network like 10\.0\.0\.0\/8$/, wrong)
})

t.test('an origin that no page has is refused with the right spelling', async (t) => {
  const rows: Record<string, string> = {
    'https://app.example/mcp': 'https://app.example',
    'https://app.example/?a=1': 'https://app.example',
    '"https://app.example"': 'https://app.example',
    'https://app.example:8443/#x': 'https://app.example:8443',
    'https://user:secret@app.example': 'https://app.example',
    'localhost:3000': 'http://localhost:3000',
  }
  for (const [written, meant] of Object.entries(rows)) {
    t.ok(issueOf('allowedOrigins', written).endsWith(`: write "${meant}"`), written)
    t.equal(issueOf('allowedOrigins', meant), 'none', meant)
    t.notMatch(issueOf('allowedOrigins', written), /secret/)
  }
  for (const wrong of ['*', 'null', 'https://*.example', 'https://', 'app.example'])
    t.match(issueOf('allowedOrigins', wrong), /^has to be an origin like/, wrong)
})

t.test('a host is allowed with the port, the names below and the spelling that it is written with', async (t) => {
  const rows: [allowed: string, named: string[], refused: string[]][] = [
    ['h.example', ['h.example', 'H.Example', 'h.example:1', 'h.example.'], ['a.h.example', 'h.example:', 'xh.example']],
    ['h.example:8443', ['h.example:8443', 'H.EXAMPLE:8443'], ['h.example', 'h.example:8444', 'h.example:80']],
    ['h.example:443', ['h.example', 'h.example:443'], ['h.example:8443']],
    ['*.example.org', ['a.example.org', 'a.b.example.org:1'], ['example.org', 'aexample.org', 'example.org.evil']],
    ['*.example.org:8443', ['a.example.org:8443'], ['a.example.org', 'a.example.org:1', 'example.org:8443']],
    ['bücher.example', ['xn--bcher-kva.example'], ['xn--bcher.example']],
    ['[FD00:0:0::1]', ['[fd00::1]', '[fd00::1]:80', '[fd00:0::1]'], ['[fd00::2]', 'fd00::1']],
    ['my_service', ['my_service', 'my_service:8080'], ['my-service']],
    ['10.0.0.1:80', ['10.0.0.1', '10.0.0.1:80'], ['10.0.0.1:8080', '10.0.0.2']],
  ]
  for (const [allowed, named, refused] of rows) {
    const { url } = await startBridge(t, legacyStdio(t).server, { allowedHosts: [allowed] })
    const at = async (host: string) => (await call(url, 'server/discover', {}, { headers: { host } })).status
    for (const host of ['127.0.0.1', 'localhost:1', ...named]) t.equal(await at(host), 200, `${allowed}: ${host}`)
    for (const host of ['evil.example', ...refused]) t.equal(await at(host), 403, `${allowed}: ${host}`)
  }
})

t.test('an origin is allowed as browsers send it, also if it is written otherwise', async (t) => {
  const rows = {
    'https://App.example/': 'https://app.example',
    'https://app.example:443': 'https://app.example',
    'https://bücher.example': 'https://xn--bcher-kva.example',
    'chrome-extension://ABC': 'chrome-extension://abc',
  }
  for (const [written, origin] of Object.entries(rows)) {
    const { url } = await startBridge(t, legacyStdio(t).server, { allowedOrigins: [written] })
    const asked = { origin, 'access-control-request-method': 'POST' }
    const { status, headers } = await send('OPTIONS', url, undefined, asked)
    t.match([status, headers['access-control-allow-origin']], [204, origin], written)
    t.equal((await call(url, 'server/discover', {}, { headers: { origin } })).status, 200, written)
    t.equal((await call(url, 'server/discover', {}, { headers: { origin: 'https://evil.example' } })).status, 403)
  }
})

t.test('start and check refuse a host that can match nothing, in the file and as a flag', async (t) => {
  const file = temporaryFile(t, 'bridge.json', { ...LEAST, allowedHosts: ['a.example', 'fd00::1'] })
  for (const args of [
    ['check', '--config', file],
    ['--config', file],
  ]) {
    const { code, stdout, stderr } = await run(t, args)
    t.not(code, 0)
    t.match(stdout + stderr, /allowedHosts\.1.*write \\?"\[fd00::1\]/, args.join(' '))
  }
  const flagged = await run(t, ['--upstream', 'https://a.example/mcp', '--allowed-host', 'https://h.example'])
  t.not(flagged.code, 0)
  t.match(flagged.stdout + flagged.stderr, /write \\?"h\.example/)
})
