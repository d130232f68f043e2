/** `wrap` of entries that start a proxy for a server with an address: the bridge takes its place. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { parseCommand } from '../../src/command/parse.js'
import { MCP_SERVERS } from '../../src/command/wrap/dialects.js'
import { entriesIn, unwrapped, wrapped } from '../../src/command/wrap/plan.js'
import { remoteIn } from '../../src/command/wrap/proxies.js'
import { joined } from '../../src/command/wrap/together.js'
import { planInWords } from '../../src/command/wrap/words.js'
import { readJson } from '../../src/config/formats/document.js'
import { editableJson } from '../../src/config/formats/edit.js'
import { bridgeCommand } from '../support/cli.js'
import { temporaryFile } from '../support/folder.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const LAUNCHER = { command: '/usr/bin/node', args: ['/opt/main.js'] }
const LAYOUT = { places: [['mcpServers']], dialect: MCP_SERVERS, open: editableJson }
const URL = 'https://x.example/mcp'

type Entry = { command: string; args: string[]; env?: Record<string, string> }
const fileWith = (entry: object) => JSON.stringify({ mcpServers: { a: entry } }, null, 2)
const wrap = (text: string, launcher = LAUNCHER) => wrapped(text, LAYOUT, entriesIn(text, LAYOUT), launcher)
const unwrap = (text: string, backup?: string) => unwrapped(text, LAYOUT, entriesIn(text, LAYOUT), backup).text
const entryIn = (text: string) => entriesIn(text, LAYOUT)[0]?.entry as unknown as Entry
/** The flags after the address, and the variables, of an entry that started mcp-remote with these words. */
function inPlaceOf(args: string[], env?: Record<string, string>) {
  const { text, left } = wrap(fileWith({ command: 'npx', args: ['-y', 'mcp-remote', ...args], ...(env && { env }) }))
  t.same(left, [], args.join(' '))
  const entry = entryIn(text)
  t.same(entry.args.slice(0, 5), ['/opt/main.js', '--listen', 'stdio', '--upstream', 'env:MCP_BRIDGE_URL'])
  return { flags: entry.args.slice(5), env: entry.env as Record<string, string>, entry }
}

t.test('recognizes mcp-remote, however it is started', async (t) => {
  const lines = [
    'npx mcp-remote URL',
    'npx -y mcp-remote@latest URL',
    'npx --yes -p mcp-remote@0.1.38 mcp-remote URL',
    'npx --package=mcp-remote -- mcp-remote URL',
    'npx.cmd -y mcp-remote URL',
    '/opt/homebrew/bin/npx --registry https://npm.example mcp-remote URL',
    'cmd /c npx -y mcp-remote@0.1 URL',
    'C:\\Windows\\System32\\cmd.exe /d /C npx mcp-remote URL',
    'bunx --bun mcp-remote URL',
    'bun x mcp-remote URL',
    'pnpm dlx mcp-remote URL',
    'pnpx mcp-remote URL',
    'yarn dlx -q mcp-remote URL',
    'npm exec -y -- mcp-remote URL',
    'deno run -A npm:mcp-remote@0.1 URL',
    'mcp-remote URL',
    '/usr/local/bin/mcp-remote URL',
    'C:\\npm\\mcp-remote.cmd URL',
    'node ./node_modules/.bin/mcp-remote URL',
    'node /usr/lib/node_modules/mcp-remote/dist/proxy.js URL',
    '/usr/bin/node --no-warnings C:\\npm\\node_modules\\mcp-remote\\dist\\proxy.js URL',
  ]
  for (const line of lines) {
    const words = line.replace('URL', URL).split(' ')
    t.match(remoteIn(words), { proxy: 'mcp-remote', url: URL, isSse: false, options: [] }, line)
  }
  const others = [
    'npx -y -p mcp-remote mcp-remote-client URL',
    'npx mcp-remote',
    'npx some-server URL mcp-remote',
    'npx mcp-remote-x URL',
    'docker run mcp-remote URL',
    'npx -c mcp-remote\u00a0URL',
  ]
  for (const line of others) t.equal(remoteIn(line.replace('URL', URL).split(' ')), undefined, line)
})

t.test('replaces mcp-remote, and translates its flags', async (t) => {
  const headers = temporaryFile(t, 'headers', 'X-A: 1')
  const cases: [given: string, flags: string[]][] = [
    ['', []],
    ['3334', ['--callback-port=3334']],
    ['--transport http-first', []],
    ['--transport sse-first', []],
    ['--transport http-only', []],
    ['--allow-http --enable-proxy --protocol auto --host 127.0.0.1 --body-timeout 0', []],
    ['--keep-alive', ['--ping=30000']],
    ['--keep-alive --ping-interval 20', ['--ping=30000', '--ping=20000']],
    ['--ping-interval 0.1', ['--ping=1000']],
    ['--ping-interval x', []],
    ['--ipv4', ['--ipv4']],
    ['--headers-timeout 600', ['--timeout=call=600000']],
    ['--headers-timeout 0', ['--timeout=call=3600000']],
    ['--ignore-tool rm* --ignore-tool x', ['--deny-tool=[Rr][Mm]*', '--deny-tool=[Xx]']],
    [`--header-file ${headers}`, [`--header-file=${headers}`]],
    ['--use-id-token', ['--use-id-token']],
    ['--device-code', ['--device-code']],
    [
      '--client-metadata-url https://c.example/x 3334',
      ['--client-metadata-url=https://c.example/x', '--redirect-uri=http://localhost:3334/oauth/callback'],
    ],
    ['--auth-success-url https://a.example/done', ['--success-url=https://a.example/done']],
    ['--static-oauth-client-metadata {"client_name":"Me"}', ['--client-name=Me']],
    [
      '--client-credentials --token-endpoint https://a.example/t --static-oauth-client-info {"client_id":"me","client_secret":"${S}"}',
      [
        '--client-credentials',
        '--token-endpoint=https://a.example/t',
        '--client-id=me',
        '--client-secret=env:S',
        '--resource=false',
      ],
    ],
    ['--protocol legacy', ['--era=legacy']],
    ['--debug', ['--log-level=debug']],
    ['--silent', ['--log-level=silent']],
    ['--resource https://t.example/', ['--resource=https://t.example/']],
    ['--disable-resource-parameter', ['--resource=false']],
    [
      '--authorize-param prompt=consent --authorize-param a=b=c',
      ['--oauth-param=prompt=consent', '--oauth-param=a=b=c'],
    ],
    ['--auth-timeout 120', ['--sign-in-wait=120000']],
    ['--auth-timeout 900', ['--sign-in-wait=300000']],
    ['--static-oauth-client-metadata {"scope":"a\u00a0b"}', ['--scope=a\u00a0b']],
    [
      '9000 --host 127.0.0.1 --callback-path /cb --static-oauth-client-info {"client_id":"me"}',
      ['--client-id=me', '--redirect-uri=http://127.0.0.1:9000/cb'],
    ],
    [
      '9000 --static-oauth-client-info {"client_id":"me","client_secret":"${S}"}',
      ['--client-id=me', '--client-secret=env:S', '--redirect-uri=http://localhost:9000/oauth/callback'],
    ],
  ]
  for (const [given, expected] of cases) {
    const { flags, env, entry } = inPlaceOf([URL, ...given.split(' ').filter(Boolean)])
    t.same(flags, expected, given)
    t.same(env, { MCP_BRIDGE_URL: URL })
    const { kind } = parseCommand(entry.args.slice(1), { ...env, S: 'secret' })
    t.equal(kind, 'run', `the bridge takes them: ${given}`)
  }
  t.match(inPlaceOf([URL, '--transport', 'sse-only']).env, { MCP_BRIDGE_URL: `sse+${URL}` })
  const { flags, env, entry } = inPlaceOf([
    ...[URL, '9000', '--static-oauth-client-info', '{"client_id":"me","client_secret":"hidden"}'],
  ])
  t.match(flags, ['--client-id=me', '--client-secret=env:MCP_BRIDGE_CLIENT_SECRET'])
  t.match(env, { MCP_BRIDGE_CLIENT_SECRET: 'hidden' })
  const command = parseCommand(entry.args.slice(1), env)
  t.match(command.kind === 'run' && command.settings.mcpServers['x.example'], {
    url: URL,
    oauth: { clientId: 'me', clientSecret: 'hidden', redirectUri: 'http://localhost:9000/oauth/callback' },
  })
})

t.test('keeps headers of mcp-remote, but not in arguments', async (t) => {
  const own = { TOKEN: 'secret', HTTPS_PROXY: 'http://proxy' }
  const headers = [
    ...['--header', 'X-Literal: my secret', '--header', 'X-Tight:tight', '--header', 'X-Whole:${TOKEN}'],
    ...['--header', 'Authorization: Bearer ${TOKEN}', '--header', 'X-Literal: second'],
  ]
  const { flags, env, entry } = inPlaceOf([...headers, URL], own)
  t.same(flags, [
    '--header-env=X-Literal=MCP_BRIDGE_HEADER_X_LITERAL',
    '--header-env=X-Tight=MCP_BRIDGE_HEADER_2_X_TIGHT',
    '--header-env=X-Whole=TOKEN',
    '--header=Authorization: Bearer ${TOKEN}',
  ])
  t.same(env, {
    ...own,
    MCP_BRIDGE_URL: URL,
    MCP_BRIDGE_HEADER_X_LITERAL: 'second',
    MCP_BRIDGE_HEADER_2_X_TIGHT: 'tight',
  })
  const command = parseCommand(entry.args.slice(1), env)
  t.match(command.kind === 'run' && command.settings.mcpServers['x.example'], {
    headers: {
      ...{ 'X-Literal': 'second', 'X-Tight': 'tight' },
      ...{ 'X-Whole': 'secret', Authorization: 'Bearer secret' },
    },
  })
})

t.test('leaves entries with untranslatable flags unchanged, with the flag and the reason', async (t) => {
  const cases: [args: string[], why: RegExp][] = [
    [['--connect-timeout', '30'], /^mcp-bridge has no flag for --connect-timeout of mcp-remote: .*5 s/],
    [['--disable-cookies'], /--disable-cookies of mcp-remote: the bridge sends the cookies of a session back/],
    [['--unheard-of'], /^mcp-bridge does not know the flag --unheard-of of mcp-remote$/],
    [['--header'], /^the flag --header of mcp-remote has no value$/],
    [['--header', 'secret'], /^its header is not like "Name: value"$/],
    [['--host', 'me.example'], /no flag for --host of mcp-remote with another host/],
    [['later'], /does not know the words after the address of mcp-remote/],
    [['--static-oauth-client-info', '{"client_id":"x"}'], /write that port after the address/],
    [['3000', '--static-oauth-client-info', '@/f'], /is in a file: write it into the entry/],
    [['3000', '--static-oauth-client-info', '[1]'], /is no JSON object/],
    [
      ['3000', '--static-oauth-client-info', '{"a":1,"client_id":"x"}'],
      /no flag for "a" in --static-oauth-client-info/,
    ],
  ]
  for (const [args, why] of cases) {
    const text = fileWith({ command: 'npx', args: ['mcp-remote', URL, ...args] })
    const plan = wrap(text)
    t.match(plan, { text, changed: [], left: [{ name: 'a', why }] }, args.join(' '))
    t.notMatch(plan.left[0]?.why, 'secret')
  }
})

t.test('unwraps an entry of mcp-remote byte for byte, or with later changes', async (t) => {
  const entries = [
    { command: 'npx', args: ['mcp-remote', URL, '--header', 'X-A: secret'], env: { A: '1' }, disabled: false },
    { args: ['-y', 'mcp-remote', URL, '--header', 'X-A: secret'], command: 'npx' },
    { env: {}, type: 'stdio', command: 'npx', args: ['-y', 'mcp-remote', URL, '--header', 'X-A: secret'] },
  ]
  for (const entry of entries) {
    const text = fileWith(entry)
    const now = wrap(text).text
    t.not(now, text)
    t.notMatch(entryIn(now).args.join(' '), 'secret')
    t.equal(wrap(now).text, now, 'wrapping twice changes nothing')
    t.equal(unwrap(now, text), text)
    const changed = now
      .replace('"secret"', '"new"')
      .replace(`"MCP_BRIDGE_URL": "${URL}"`, `"MCP_BRIDGE_URL": "${URL}/2"`)
    const args = entry.args.map((word) => (word === URL ? `${URL}/2` : word.replace('X-A: secret', 'X-A:new')))
    t.same(entryIn(unwrap(changed, text)), { ...entry, args })
    t.match(entryIn(unwrap(now)), { url: URL, headers: { 'X-A': 'secret' } }, 'without a backup, its address')
  }
})

t.test('recognizes other proxies, only for servers with an address', async (t) => {
  const cases: [line: string, env: Record<string, string>, url: string, flags: string[]][] = [
    ['npx -y supergateway --sse URL', {}, `sse+${URL}`, []],
    [
      'npx -y supergateway@4 --streamableHttp URL --oauth2Bearer t --logLevel none --outputTransport stdio',
      {},
      URL,
      ['--header-env=Authorization=MCP_BRIDGE_HEADER_AUTHORIZATION', '--log-level=silent'],
    ],
    ['uvx mcp-proxy URL --transport sse', {}, URL, []],
    ['mcp-proxy --headers X-A 1 URL', {}, URL, ['--header-env=X-A=MCP_BRIDGE_HEADER_X_A']],
    [
      'uv tool run mcp-proxy URL',
      { API_ACCESS_TOKEN: 't' },
      URL,
      ['--header=Authorization: Bearer ${API_ACCESS_TOKEN}'],
    ],
  ]
  for (const [line, env, url, flags] of cases) {
    const [command, ...args] = line.replace('URL', URL).split(' ')
    const text = fileWith({ command, args, env })
    const { text: now, left } = wrap(text)
    t.same(left, [], line)
    t.match(entryIn(now).env, { ...env, MCP_BRIDGE_URL: url })
    t.same(entryIn(now).args.slice(5), flags, line)
    t.equal(unwrap(now, text), text)
  }
  for (const line of ['npx -y supergateway --stdio x', 'npx mcp-proxy --port 8080 -- npx server']) {
    const [command, ...args] = line.split(' ')
    const now = entryIn(wrap(fileWith({ command, args })).text)
    t.same(now.args.slice(3), ['--pass-environment', '--', command, ...args], 'a program like others')
  }
})

t.test('wrap --together moves the server of mcp-remote, with all its arguments', async (t) => {
  const cases: [entry: object, server: object | RegExp][] = [
    [
      {
        command: 'npx',
        args: [
          'mcp-remote',
          URL,
          '3000',
          '--header',
          'Authorization:Bearer ${T}',
          '--transport',
          'sse-only',
          '--debug',
        ],
        env: { T: 'secret' },
      },
      { type: 'sse', url: URL, headers: { Authorization: 'Bearer secret' }, oauth: { callbackPort: 3000 } },
    ],
    [
      {
        command: 'npx',
        args: [
          'mcp-remote',
          URL,
          '--ignore-tool',
          'rm*',
          '--ignore-tool',
          'a?',
          '--resource',
          '',
          '--authorize-param',
          'a=b',
        ],
      },
      { url: URL, tools: { deny: ['[Rr][Mm]*', '[Aa]\\?'] }, oauth: { resource: false, params: { a: 'b' } } },
    ],
    [{ command: 'npx', args: ['mcp-remote', URL, '--header', 'A:${T}'] }, /it has a reference/],
    [
      { command: 'npx', args: ['mcp-remote', URL], env: { HTTPS_PROXY: 'x' } },
      /its variable HTTPS_PROXY would be for all/,
    ],
  ]
  for (const [entry, server] of cases) {
    const joining = { layout: LAYOUT, launcher: LAUNCHER, configPath: '/c.mcp-bridge.json', config: undefined }
    const { config, left } = joined(fileWith(entry), joining)
    if (server instanceof RegExp) t.match(left, [{ name: 'a', why: server }])
    else t.same((readJson(config).value as { mcpServers: object }).mcpServers, { a: server })
  }
})

t.test('a dry run prints no secret of a proxy', async (t) => {
  const secrets = [
    ['npx', 'mcp-remote', `${URL}?key=hidden`, '--header', 'Authorization: Bearer hidden'],
    ['npx', 'mcp-remote', URL, '9000', '--static-oauth-client-info', '{"client_id":"a","client_secret":"hidden"}'],
    ['npx', 'supergateway', '--sse', URL, '--oauth2Bearer', 'hidden'],
    ['uvx', 'mcp-proxy', URL, '--headers', 'Authorization', 'hidden'],
  ]
  for (const [command, ...args] of secrets) {
    const said = planInWords(wrap(fileWith({ command, args })), 'f.json', true).join('\n')
    t.match(said, `- ${command} ${args[0]}`)
    t.notMatch(said, 'hidden', args.join(' '))
  }
})

t.test('calls the server of mcp-remote through the bridge, with its headers', async (t) => {
  const url = await startSdkV1(t, (server) => {
    server.registerTool('whoami', {}, (extra) => ({
      content: [{ type: 'text', text: String(extra.requestInfo?.headers['authorization']) }],
    }))
  })
  const text = fileWith({
    command: 'npx',
    args: ['-y', 'mcp-remote', url, '--allow-http', '--header', 'Authorization:Bearer ${TOKEN}'],
    env: { TOKEN: 'of the entry' },
  })
  const { command, args, env = {} } = entryIn(wrap(text, bridgeCommand()).text)
  const client = new Client({ name: 'walker', version: '1.0.0' })
  t.teardown(() => client.close())
  await client.connect(
    new StdioClientTransport({ command, args, env: { ...getDefaultEnvironment(), ...env }, stderr: 'ignore' }),
  )
  const result = (await client.callTool({ name: 'whoami' })) as { content: { text: string }[] }
  t.equal(result.content[0]?.text, 'Bearer of the entry')
})
