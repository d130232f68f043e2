/** The commands of the pages for operators run as they are written, with their ports, in a network of their own. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { env, execPath } from 'node:process'
import t, { type Test } from 'tap'
import { blocksOf } from './support/blocks.js'
import { main, watchProgram } from './support/cli.js'
import { temporaryFolder } from './support/folder.js'
import { envelope } from './support/modern.js'

/** Runs a script in a network with nothing but a loopback. */
const ALONE = ['--map-root-user', '--net', 'sh', '-ec']
const UP = 'ip link set lo up\n'
const skip =
  spawnSync('unshare', [...ALONE, `${UP}curl --version`]).status === 0
    ? false
    : 'there are no networks of their own here'

/** The commands of a page, without their comments. */
const commandsOf = (page: string): string[] =>
  blocksOf(readFileSync(new URL(`../docs/${page}.md`, import.meta.url), 'utf8'), 'sh')
    .join('')
    .replaceAll(/ +# .*$/gm, '')
    .trim()
    .split('\n')

/** Writes the paths of the requests that it gets. */
const COLLECTOR = `require('node:http').createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => { body += chunk }).on('end', () => {
    fs.appendFileSync('collected', request.url + ' ' + (request.headers.authorization ?? '') + ' ' + body + '\\n')
    response.end('{}')
  })
}).listen(4318)`
const DISCOVER = `curl -sf http://127.0.0.1:8080/mcp -H 'content-type: application/json' \
  -d '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'`
const CALL = `curl -sf http://127.0.0.1:8080/mcp -H 'content-type: application/json' -H 'mcp-protocol-version: 2026-07-28' \
  -H 'mcp-method: tools/call' -H 'mcp-name: find_train' \
  -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'find_train', arguments: { to: 'Oslo' }, _meta: envelope() } })}'`
/** Waits until a command works. */
const untilWorks = (command: string) => `until ${command} >/dev/null; do sleep 0.1; done\n`

/** Runs a script in a folder with a configuration, with `mcp-bridge` on the PATH. Resolves to what it printed and the files it left. */
async function run(t: Test, script: string, settings = {}) {
  const folder = temporaryFolder(t)
  const bin = join(folder, 'mcp-bridge')
  writeFileSync(bin, `#!/bin/sh\nexec '${execPath}' '${main}' "$@"\n`)
  chmodSync(bin, 0o755)
  const config = { mcpServers: { modern: { command: execPath, args: [main, 'demo', 'modern-server'] } }, ...settings }
  for (const name of ['mcp.json', 'bridge.json']) writeFileSync(join(folder, name), JSON.stringify(config))
  // What has been started would keep the output open, if a command fails.
  const child = spawn('unshare', [...ALONE, `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${UP}${script}`], {
    cwd: folder,
    env: {
      ...env,
      HOME: folder,
      XDG_RUNTIME_DIR: folder,
      XDG_STATE_HOME: folder,
      PATH: [folder, env['PATH']].join(delimiter),
    },
  })
  const program = watchProgram(t, child)
  const code = await program.ended
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  if (code !== 0) t.comment(program.stdout() + program.stderr())
  return { code, out: program.stdout(), err: program.stderr(), read }
}

t.test('metrics, health and changes of a running bridge', { skip }, async (t) => {
  const [start = '', scrape = ''] = commandsOf('metrics')
  const [here = '', ofFile = '', other = ''] = commandsOf('health')
  const changes = commandsOf('changes')
  const [check = '', hangUp = ''] = changes
  // Those that add and remove servers run in command/managed-servers.
  const version = changes.find((command) => command.includes('--version')) ?? 'false'
  const { code, out, err } = await run(
    t,
    `${start} & bridge=$!
${untilWorks(DISCOVER)}${scrape}
${here}
${ofFile}
${other}
${check}
${hangUp.replace('<pid>', '$bridge')}
${version}
kill $bridge
wait $bridge`,
    { admin: 'http://127.0.0.1:9090' },
  )
  t.equal(code, 0)
  for (const said of [/^mcp_bridge_/m, /ready/, /"servers"/, /config_(changed|unchanged)/, /^\d+\.\d+\.\d+/m])
    t.ok(said.test(out + err), String(said))
})

t.test('the log in JSON at level debug', { skip }, async (t) => {
  const [start = ''] = commandsOf('logs')
  const { code, err } = await run(t, `${start} & bridge=$!\n${untilWorks(DISCOVER)}kill $bridge\nwait $bridge`)
  t.equal(code, 0)
  const levels = err
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { level: number }).level)
  t.ok(levels.includes(20), 'what is only there at debug')
})

t.test('traces and audit lines arrive at a collector', { skip }, async (t) => {
  const [traced = ''] = commandsOf('traces')
  const [audited = ''] = commandsOf('audit')
  const collected = (start: string) =>
    `node -e "$COLLECTOR" & collector=$!
${start} & bridge=$!
${untilWorks(DISCOVER)}${CALL}
kill $bridge
wait $bridge
kill $collector`.replace('"$COLLECTOR"', `'${COLLECTOR.replaceAll("'", `'"'"'`)}'`)
  // Nobody but the collector is there.
  const traces = await run(t, collected(traced.replace('--upstream https://example.com/mcp', '--config mcp.json')))
  t.equal(traces.code, 0)
  t.match(traces.read('collected'), /^\/v1\/traces /m)
  const here = audited.replace('https://collector.example.com', 'http://127.0.0.1:4318').replace('…', 'a-token')
  const audit = await run(t, collected(here), { audit: { otlp: true } })
  t.equal(audit.code, 0)
  t.match(audit.read('collected'), /^\/v1\/logs Bearer a-token /m)
})

t.test('the size for a load', { skip }, async (t) => {
  const [size = ''] = commandsOf('limits')
  const { code, out } = await run(t, size)
  t.equal(code, 0)
  t.match(out, /replicas/)
})
