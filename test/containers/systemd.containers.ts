/** Runs alone: containers. The units of docs/systemd.md in a Debian with systemd: its commands, the end of a start, and its socket. */
import { execFileSync } from 'node:child_process'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { docker, dockerFails, engine, newName } from '../support/containers.js'
import { secret } from '../support/deployment.js'
import { until } from '../support/eventually.js'
import { commands, config, socketUnit, unit, values } from '../support/systemd-units.js'

const IMAGE = 'mcp-bridge-test-systemd'
/** As npm installs the bridge globally. Outside of containers, systemd shares mounts by itself; its credentials need that. */
const DOCKERFILE = `FROM mcp-bridge:tools
USER root
RUN apt-get update && apt-get install -y --no-install-recommends systemd procps && rm -rf /var/lib/apt/lists/* \\
  && chmod 755 /app/dist/main.js && ln -s /app/dist/main.js /usr/bin/mcp-bridge
HEALTHCHECK NONE
ENTRYPOINT ["sh", "-c", "mount --make-rshared / && exec /lib/systemd/systemd --log-target=journal"]
CMD []
`
/** Restarts of the service under calls. */
const RESTARTS = Number(env['MCP_BRIDGE_RESTARTS'] ?? 3)
const URL_OF_CONFIG = (JSON.parse(config) as { listen: string }).listen

/** What systemd needs for the namespaces of the unit. Some machines cannot give the capability that is left out. */
const PRIVILEGES = [
  '--cap-add=ALL',
  '--cap-drop=SYS_RESOURCE',
  '--security-opt=seccomp=unconfined',
  '--security-opt=apparmor=unconfined',
]

/** Why systemd cannot run in a container here; false where it can. */
const skip = (() => {
  try {
    const options = ['run', '--rm', ...PRIVILEGES, '--user=0', '--entrypoint=true', 'mcp-bridge:tools']
    execFileSync(engine, options, { stdio: 'pipe' })
    return false
  } catch (error) {
    return `no containers with these privileges: ${(error as Error).message}`
  }
})()

/** A machine with systemd, and the files of the documentation. */
async function machine(t: Test) {
  const build = ['build', '--network=host', `--tag=${IMAGE}`, '-']
  execFileSync(engine, build, { input: DOCKERFILE, env: { ...env, DOCKER_BUILDKIT: '1' }, stdio: 'pipe' })
  const name = newName(t)
  await docker(
    'run',
    '--detach',
    `--name=${name}`,
    ...PRIVILEGES,
    '--cgroupns=private',
    '--tmpfs=/run',
    '--tmpfs=/tmp',
    IMAGE,
  )
  const sh = (line: string) => docker('exec', name, 'bash', '-c', line)
  const write = (path: string, text: string) =>
    docker(
      'exec',
      name,
      'node',
      '-e',
      'fs.mkdirSync(path.dirname(process.argv[1]), { recursive: true }); fs.writeFileSync(process.argv[1], process.argv[2], { mode: 0o600 })',
      path,
      text,
    )
  await until(
    async () => /running|degraded/.test(await sh('systemctl is-system-running || true')),
    'the start of systemd',
  )
  await write('/etc/systemd/system/mcp-bridge.service', unit)
  const orders = { command: 'node', args: ['/app/dist/main.js', 'demo', 'modern-server'] }
  await write('/etc/mcp-bridge/mcp.json', JSON.stringify({ ...JSON.parse(config), mcpServers: { orders } }))
  await sh('chmod 755 /etc/mcp-bridge && chmod 644 /etc/mcp-bridge/mcp.json')
  for (const credential of values('LoadCredential')) {
    const [id = '', path = ''] = credential.split(':')
    await write(path, secret(id))
  }
  return { name, sh, write }
}

/** Calls the bridge from inside. What it prints: the status, or the code of the error. */
const CALLS = `
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: 'Bearer ' + process.argv[2] }
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover' })
const counts = {}
;(async () => {
  do {
    const outcome = await fetch(process.argv[1], { method: 'POST', headers: { ...headers, connection: 'close' }, body })
      .then(async (answer) => (await answer.text(), answer.headers.get('mcp-bridge-error') ?? answer.status), (error) => error.cause?.code ?? error.message)
    counts[outcome] = (counts[outcome] ?? 0) + 1
    await new Promise((resolve) => setTimeout(resolve, 10))
  } while (process.argv[3] && !fs.existsSync(process.argv[3]))
  console.log(JSON.stringify(counts))
})()`

t.test('systemd starts the bridge by the units of the documentation', { skip, timeout: 600_000 }, async (t) => {
  const { name, sh, write } = await machine(t)
  const called = async (untilFile = '') =>
    JSON.parse(
      await docker('exec', name, 'node', '-e', CALLS, URL_OF_CONFIG, secret('token-shop'), untilFile),
    ) as Record<string, number>
  const [enable = '', reload = '', journal = '', enableSocket = '', restart = ''] = commands

  await t.test('the commands run as they are written, and a start ends when the bridge serves', async (t) => {
    await sh(enable)
    t.same(await called(), { 200: 1 }, 'it is answered at once')
    await sh(reload)
    await until(async () => (await sh(journal)).includes('"event":"config_changed"'), 'the reload')
    t.equal(await sh('systemctl is-active mcp-bridge'), 'active')
    const ended = await sh('systemctl stop mcp-bridge && systemctl show mcp-bridge --property Result --value')
    t.equal(ended, 'success')
  })

  await t.test('a start without a usable configuration fails at once', async (t) => {
    await sh('mv /etc/mcp-bridge/mcp.json /etc/mcp-bridge/kept.json')
    t.match(await dockerFails('exec', name, 'systemctl', 'start', 'mcp-bridge'), /failed/)
    t.equal(await sh('systemctl show mcp-bridge --property NRestarts --value'), '0', 'once')
    await sh(
      'mv /etc/mcp-bridge/kept.json /etc/mcp-bridge/mcp.json; systemctl reset-failed mcp-bridge; systemctl stop mcp-bridge',
    )
  })

  await t.test('a killed bridge is started again', async () => {
    await sh('systemctl start mcp-bridge && systemctl kill --kill-who=main --signal=KILL mcp-bridge')
    await until(async () => (await sh('systemctl show mcp-bridge --property NRestarts --value')) === '1', 'the restart')
    await until(async () => (await sh('systemctl is-active mcp-bridge || true')) === 'active', 'being active')
    await sh('systemctl stop mcp-bridge')
  })

  await t.test('the exposure is below 3 of 10', async (t) => {
    const [, exposure] =
      /exposure level for mcp-bridge.service: ([\d.]+)/.exec(
        await sh('systemd-analyze security --no-pager mcp-bridge'),
      ) ?? []
    t.comment(`exposure ${exposure}`)
    t.ok(Number(exposure) < 3, `exposure ${exposure}`)
  })

  await t.test(`the socket starts the bridge, and ${RESTARTS} restarts refuse nobody`, async (t) => {
    await write('/etc/systemd/system/mcp-bridge.socket', socketUnit)
    await sh(enableSocket)
    t.equal(await sh('systemctl is-active mcp-bridge || true'), 'inactive')
    t.same(await called(), { 200: 1 }, 'the first client waits for the start')
    const calling = Promise.all(['/tmp/over', '/tmp/over', '/tmp/over'].map((file) => called(file)))
    // systemd refuses more than a few starts in ten seconds.
    for (let i = 0; i < RESTARTS; i++) await sh(`systemctl reset-failed mcp-bridge; ${restart}`)
    await sh('touch /tmp/over')
    for (const counts of await calling) {
      t.comment(JSON.stringify(counts))
      t.same(
        Object.keys(counts).filter((outcome) => outcome !== '200' && outcome !== 'draining'),
        [],
      )
    }
    await write(
      '/etc/mcp-bridge/mcp.json',
      (await sh('cat /etc/mcp-bridge/mcp.json')).replace('127.0.0.1:8080', '127.0.0.1:8081'),
    )
    await dockerFails('exec', name, 'systemctl', 'restart', 'mcp-bridge')
    t.match(
      await sh(journal),
      /systemd listens at http:\/\/127\.0\.0\.1:8080, and the configuration says http:\/\/127\.0\.0\.1:8081/,
    )
  })
})
