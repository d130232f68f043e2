/** Runs alone: containers. The image, run as its documents say, and with as little of the machine as it can do with. */
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import splitCommandLine from 'string-argv'
import t, { type Test } from 'tap'
import { says } from '../support/cli.js'
import {
  CONFINED,
  docker,
  dockerFails,
  inspect,
  logsOf,
  newName,
  published,
  root,
  startContainer,
  startDocker,
  untilHealthy,
} from '../support/containers.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'

const MODERN = ['--', 'node', '/app/dist/main.js', 'demo', 'modern-server']
const LISTEN = ['--listen', 'http://0.0.0.0:8080/mcp', '--allow-unauthenticated']
const PUBLISH = '--publish=127.0.0.1::8080'
const CHECKS = 100
const TOKEN = 'token-of-a-container-0123456789abcdef'

/** The `docker run` lines of a document, as words. */
function linesOf(path: string): string[][] {
  const text = readFileSync(join(root, path), 'utf8').replaceAll(/\\\n\s*/g, '')
  return [...text.matchAll(/^docker run .*$/gm)].map(([line]) => splitCommandLine(line).slice(1))
}

/** Sends `initialize` on stdin. */
const INITIALIZE = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})}\n`

/** The seconds of CPU that a health check takes in a container, of many. */
async function cpuOfCheck(name: string): Promise<number> {
  const many = `i=0; while [ $i -lt ${CHECKS} ]; do sh /app/healthcheck.sh >/dev/null; i=$((i + 1)); done; times`
  const times = await docker('exec', name, 'sh', '-c', many)
  const seconds = [...times.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s))
  return seconds.reduce((sum, one) => sum + one, 0) / CHECKS
}

t.test('the lines of the README run as they are written', async (t) => {
  const [gateway = [], stdio = []] = linesOf('README.md')
  await t.test('a gateway with a token', async (t) => {
    const name = newName(t)
    const program = startDocker(t, ['run', `--name=${name}`, ...gateway.slice(1)], { TOKEN })
    await says(program, /listening on|"event":"listening"/)
    const url = 'http://127.0.0.1:8080/mcp'
    t.equal((await call(url, 'tools/list')).status, 401, 'nobody without the token')
    t.equal(
      (await call(url, 'tools/list', {}, { headers: { authorization: `Bearer ${TOKEN}` } })).status === 401,
      false,
    )
    await untilHealthy(name)
    await docker('stop', name)
    t.equal(await program.ended, 0)
  })
  await t.test('a server on stdio', async (t) => {
    const name = newName(t)
    const program = startDocker(t, ['run', `--name=${name}`, ...stdio.slice(1)])
    program.child.stdin.write(INITIALIZE)
    // Nobody need be at the address of the example.
    await until(() => program.stdout().includes('\n'), 'an answer')
    t.match(JSON.parse(program.stdout().split('\n')[0] as string), { jsonrpc: '2.0', id: 1 })
    program.child.stdin.end()
    await program.ended
  })
})

t.test('stdio works with -i, and ends with its input', async (t) => {
  const program = startDocker(t, ['run', '-i', '--rm', ...CONFINED, 'mcp-bridge', '--listen', 'stdio', ...MODERN])
  program.child.stdin.write(INITIALIZE)
  await until(() => program.stdout().includes('\n'), 'an answer')
  t.match(JSON.parse(program.stdout().split('\n')[0] as string), { id: 1, result: { protocolVersion: '2025-11-25' } })
  program.child.stdin.end()
  t.equal(await program.ended, 0)
})

/** The image, and the variant with npm, uv and Python. */
const VARIANTS = ['mcp-bridge', 'mcp-bridge:tools']

for (const image of VARIANTS)
  t.test(`${image} says what to do without arguments, and what it is`, async (t) => {
    t.match(await docker('run', '--rm', image), /Start it\n.*mcp-bridge/)
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    t.match(JSON.parse(await docker('image', 'inspect', '--format', '{{json .Config.Labels}}', image)), {
      'org.opencontainers.image.title': 'mcp-bridge',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    })
    const bytes = Number(await docker('image', 'inspect', '--format', '{{.Size}}', image))
    t.comment(`size of ${image}: ${Math.round(bytes / 1e6)} MB`)
  })

t.test('the image has no program but Node.js, the shell and the init, and says where others are', async (t) => {
  const programs = await docker('run', '--rm', '--entrypoint=sh', 'mcp-bridge', '-c', 'cd /usr/bin; echo *')
  t.same(programs.split(' ').sort(), ['dash', 'sh', 'tini'])
  const local = await docker('run', '--rm', '--entrypoint=sh', 'mcp-bridge', '-c', 'cd /usr/local/bin; echo *')
  t.same(local.split(' ').sort(), ['node', 'npm', 'npx', 'uv', 'uvx'])
  for (const name of ['npx', 'uvx'])
    t.match(await dockerFails('run', '--rm', `--entrypoint=${name}`, 'mcp-bridge'), `${name} is not in this image`)
  const status = `process.stdout.write(require('fs').readFileSync('/var/lib/dpkg/status', 'utf8'))`
  const packages = await docker('run', '--rm', '--entrypoint=node', 'mcp-bridge', '-e', status)
  for (const name of ['libc6', 'libstdc++6', 'tini'])
    t.ok(packages.includes(`Package: ${name}\n`), `scanners see ${name}`)
  const name = await startContainer(t, [...CONFINED, '--tmpfs=/tmp'], [...LISTEN, '--', 'npx', '-y', 'some-server'])
  await until(async () => (await logsOf(name)).includes('npx is not in this image'), 'the reason')
})

t.test('the image starts with code that has been compiled before, and nobody can change it', async (t) => {
  for (const image of VARIANTS) {
    const options = [...CONFINED, '--env=NODE_DEBUG_NATIVE=COMPILE_CACHE']
    const name = await startContainer(t, options, [...LISTEN, '--upstream', 'http://127.0.0.1:9/mcp'], image)
    await until(async () => (await logsOf(name)).includes('"event":"listening"'), 'the start')
    const lines = (await logsOf(name)).split('\n').filter((line) => line.includes('/app/dist/'))
    for (const file of ['main.js', 'bridge.cjs', 'http.cjs', 'undici.cjs', 'metrics.cjs'])
      t.ok(
        lines.some((line) => line.includes(`/app/dist/${file}`) && / accepted/.test(line)),
        `${file} is compiled`,
      )
    t.notOk(
      lines.some((line) => / rejected| was not accepted/.test(line)),
      'and none of it is old',
    )
    const writes = 'for path in /app /app/compiled /app/compiled/*; do [ -w $path ] && echo $path; done; true'
    t.equal(await docker('exec', await startContainer(t, [], [...LISTEN, ...MODERN], image), 'sh', '-c', writes), '')
  }
})

/** A server in Python. */
const PYTHON = `import sys, json
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    results = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}, "tools/list": {"tools": []}}
    result = results.get(message["method"])
    answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "No"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)`

t.test('the variant with tools runs servers of Python', async (t) => {
  const options = [...CONFINED, '--tmpfs=/tmp', PUBLISH]
  const name = await startContainer(t, options, [...LISTEN, '--', 'python3', '-c', PYTHON], 'mcp-bridge:tools')
  await untilHealthy(name)
  const url = `${await published(name, 8080)}/mcp`
  await until(async () => (await call(url, 'tools/list')).status === 200, 'an answer of the server')
})

/** Writes a wheel: a server with the script `echo-server`. uvx needs no registry for it. */
const WHEEL = `import zipfile
with zipfile.ZipFile("/out/echo_server-1.0.0-py3-none-any.whl", "w") as wheel:
    info = "echo_server-1.0.0.dist-info/"
    files = {
        "echo_server.py": "def main():\\n" + "".join("    " + line + "\\n" for line in SERVER.split("\\n")),
        info + "METADATA": "Metadata-Version: 2.1\\nName: echo-server\\nVersion: 1.0.0\\n",
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        info + "entry_points.txt": "[console_scripts]\\necho-server = echo_server:main\\n",
    }
    files[info + "RECORD"] = "".join(name + ",,\\n" for name in [*files, info + "RECORD"])
    for name, text in files.items(): wheel.writestr(name, text)`

t.test('the variant with tools runs a server that uvx starts', async (t) => {
  t.match(await docker('run', '--rm', '--entrypoint=uvx', 'mcp-bridge:tools', '--version'), /^uvx? \d/)
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const make = ['--user=0:0', `--volume=${folder}:/out`, '--entrypoint=python3', 'mcp-bridge:tools']
  await docker('run', '--rm', ...make, '-c', `SERVER = ${JSON.stringify(PYTHON)}\n${WHEEL}`)
  const uvx = ['uvx', '--offline', '--from', '/servers/echo_server-1.0.0-py3-none-any.whl', 'echo-server']
  const options = [...CONFINED, '--tmpfs=/tmp:exec', `--volume=${folder}:/servers:ro`, PUBLISH]
  const name = await startContainer(t, options, [...LISTEN, '--', ...uvx], 'mcp-bridge:tools')
  await untilHealthy(name)
  const url = `${await published(name, 8080)}/mcp`
  await until(async () => (await call(url, 'tools/list')).status === 200, 'an answer of the server')
})

t.test('a read-only container without capabilities serves, is healthy, and stops in time', async (t) => {
  const name = await startContainer(t, [...CONFINED, '--tmpfs=/tmp', PUBLISH], [...LISTEN, ...MODERN])
  await untilHealthy(name)
  const url = `${await published(name, 8080)}/mcp`
  t.equal((await call(url, 'tools/list')).status, 200)
  t.match(await docker('exec', name, 'sh', '/app/healthcheck.sh'), /^serving/)

  await docker('kill', '--signal=HUP', name)
  await docker('kill', '--signal=USR1', name)
  await until(async () => (await logsOf(name)).includes('config_unchanged'), 'the signal')
  t.notMatch(await logsOf(name), /Debugger listening/, 'SIGUSR1 of another process opens no debugger')
  t.equal(await inspect(name, '{{.State.Running}}'), 'true', 'SIGHUP does not end it')
  t.equal((await call(url, 'tools/list')).status, 200)

  await docker('stop', '--time', '30', name)
  t.equal(await inspect(name, '{{.State.ExitCode}}'), '0')
})

t.test('a stopped process is unhealthy, and one that goes on is healthy again', async (t) => {
  const name = await startContainer(
    t,
    [
      ...CONFINED,
      '--health-interval=1s',
      '--health-start-period=0s',
      '--health-retries=1',
      '--env=MCP_BRIDGE_HEALTH_FILE=/dev/shm/x',
    ],
    [...LISTEN, ...MODERN],
  )
  await untilHealthy(name)
  const pid = await docker('exec', name, 'sh', '-c', 'read -r pid _ </proc/1/task/1/children; echo "$pid"')
  await docker('exec', name, 'sh', '-c', `kill -STOP ${pid}`)
  await until(async () => (await inspect(name, '{{.State.Health.Status}}')) === 'unhealthy', 'being unhealthy')
  await docker('exec', name, 'sh', '-c', `kill -CONT ${pid}`)
  await untilHealthy(name)
})

t.test('a small machine is enough: a tenth of a CPU and 256 MB', async (t) => {
  await small(t, ['--cpus=0.1', '--memory=256m'])
})

t.test('a twentieth of a CPU is enough to be healthy', async (t) => {
  await small(t, ['--cpus=0.05', '--memory=256m'])
})

async function small(t: Test, options: string[]): Promise<void> {
  const began = performance.now()
  const name = await startContainer(
    t,
    [...CONFINED, ...options, '--tmpfs=/tmp', PUBLISH, '--health-interval=2s'],
    [...LISTEN, ...MODERN],
  )
  await untilHealthy(name)
  t.comment(`healthy after ${Math.round(performance.now() - began)} ms`)
  const url = `${await published(name, 8080)}/mcp`
  await until(async () => (await call(url, 'tools/list')).status === 200, 'an answer')
  const clients: LegacyClient[] = []
  while (clients.length < 100) clients.push(await LegacyClient.open(url))
  t.equal((await (clients.at(-1) as LegacyClient).request('tools/list')).status, 200)
  t.comment(`memory with 100 sessions: ${await docker('stats', '--no-stream', '--format', '{{.MemUsage}}', name)}`)
  t.equal(await inspect(name, '{{.State.Health.Status}}'), 'healthy')
  t.equal(await inspect(name, '{{.State.OOMKilled}}'), 'false')
}

t.test('a health check costs next to nothing', async (t) => {
  const name = await startContainer(t, [...CONFINED, '--no-healthcheck', PUBLISH], [...LISTEN, ...MODERN])
  await until(async () => (await logsOf(name)).includes('server_ready'), 'the start')
  const each = await cpuOfCheck(name)
  t.comment(`${each} s of CPU for each check`)
  t.ok(each > 0 && each < 0.03, `${each} s`)
  t.comment(`memory idle: ${await docker('stats', '--no-stream', '--format', '{{.MemUsage}}', name)}`)
  t.comment(`size of the image: ${await docker('image', 'inspect', '--format', '{{.Size}}', 'mcp-bridge')}`)
})

t.test('npx starts a server inside, where /tmp may execute', async (t) => {
  const npx = ['--', 'npx', '-y', '@modelcontextprotocol/server-everything']
  const name = await startContainer(
    t,
    [...CONFINED, '--tmpfs=/tmp:exec', '--network=host'],
    [...['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', ...npx]],
    'mcp-bridge:tools',
  )
  const isKnown = async () => /"event":"server_(ready|unavailable)"/.test(await logsOf(name))
  // npm downloads a hundred packages, which may take as long as two ordinary waits.
  await until(isKnown, 'the server').catch(() => until(isKnown, 'the server'))
  const text = await logsOf(name)
  if (/ENOTFOUND|EAI_AGAIN|ETIMEDOUT|CERT|certificate/.test(text))
    t.pass('there is no registry', { skip: 'there is no registry of npm' })
  else t.match(text, /"event":"server_ready"/)
})
