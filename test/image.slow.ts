/**
 * The image: what its Dockerfile says, that what it copies is enough to run where nothing can be written, and, where there
 * is an engine that can build it, that it runs with as little as a container can have.
 */
import { type ChildProcessWithoutNullStreams, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { env as environment, execPath, getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import splitCommandLine from 'string-argv'
import t, { type Test } from 'tap'
import { type Program, says, watchProgram } from './support/cli.js'
import { commandIn, secret } from './support/deployment.js'
import { inContext, named, parseDockerfile, type Stage } from './support/dockerfile.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { call } from './support/modern.js'

const run = promisify(execFile)

const root = fileURLToPath(new URL('../', import.meta.url))
const text = (path: string) => readFileSync(join(root, path), 'utf8')
const stages = parseDockerfile(text('Dockerfile'))
const stage = (name: string) => stages.find((one) => one.name === name) as Stage
const image = stages.at(-1) as Stage
const words = (name: string) => named(image, name).at(-1)?.words ?? []
const [user = '', group = ''] = (words('USER')[0] ?? '').split(':')
const variables = Object.fromEntries(words('ENV').map((word) => word.split('=') as [string, string]))
/** The command that says how the container is: HEALTHCHECK without its CMD. */
const healthcheck = JSON.parse((named(image, 'HEALTHCHECK')[0]?.text ?? '').replace(/^CMD /, '')) as string[]

/** A legacy server, small enough to be a word on a command line. */
const SERVER = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const results = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
    'tools/call': { content: [{ type: 'text', text: 'called' }] },
  }
  const result = results[method]
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'No' } }) }))
})`
const INITIALIZE = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})}\n`

t.test('the Dockerfile pins its base, installs little and runs as a numbered user', async (t) => {
  const { version, license } = JSON.parse(text('package.json')) as Record<string, string>
  const all = stages.flatMap(({ instructions }) => instructions)
  const labels = named(image, 'LABEL')
    .map(({ text }) => text)
    .join(' ')
  const installed = named(stage('debian'), 'RUN')
    .map(({ text }) => text)
    .join('\n')

  const names = stages.map(({ name }) => name)
  const bases = /^(?:node:24-slim|ghcr\.io\/astral-sh\/uv:\d+\.\d+|scratch)$/
  for (const { from } of stages)
    t.ok(names.includes(from) || bases.test(from), `${from} is a stage, or an image with a tag`)
  t.equal(image.name, 'slim', 'the variant without tools is built by default')
  for (const instruction of ['USER', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'])
    t.same(
      named(stage('tools'), instruction).map(({ text }) => text),
      named(image, instruction).map(({ text }) => text),
      `${instruction} is the same in both variants`,
    )
  t.match(user, /^[1-9][0-9]+$/, 'the user is a number, as Kubernetes wants it to see that it is not root')
  t.match(group, /^[1-9][0-9]+$/, 'so is the group')
  for (const one of [stage('tools'), image])
    t.ok(
      one.instructions.findLastIndex(({ name }) => name === 'RUN') <
        one.instructions.findIndex(({ name }) => name === 'USER'),
    )
  t.same(words('ENTRYPOINT').slice(0, 2), ['tini', '--'], 'an init reaps what is left')
  t.ok(words('ENTRYPOINT').includes('--disable-sigusr1'), 'no other program opens the debugger')
  t.match(installed, /apt-get install -y --no-install-recommends tini\b/, 'which is in the image')
  t.same(words('CMD'), ['--help'])
  t.equal(healthcheck[0], 'sh', 'the check starts no Node.js')
  t.match(labels, `version="${version}"`, 'its version is that of the package')
  t.match(labels, `licenses="${license}"`)
  t.same(
    all.filter(({ name }) => name === 'ADD'),
    [],
    'nothing is fetched by address',
  )
  t.match(
    named(stage('build'), 'RUN')[0]?.text,
    /^npm ci --ignore-scripts$/,
    'the lockfile decides, and no package runs',
  )
  t.notMatch(
    text('Dockerfile'),
    /token|password|secret|api[-_]?key|--allow-unauthenticated/i,
    'no secret, no open door',
  )
  t.same(variables, {
    PATH: '/usr/local/bin:/usr/bin',
    NODE_ENV: 'production',
    HOME: '/tmp',
    MCP_BRIDGE_HEALTH_FILE: '/dev/shm/mcp-bridge-health',
    NODE_COMPILE_CACHE: '/app/compiled',
  })
})

t.test('every copied file exists, and nothing else enters a build', async (t) => {
  const ignored = text('.dockerignore')
  const copied = stages.flatMap((one) => named(one, 'COPY').filter(({ flags }) => flags['from'] === undefined))
  for (const path of copied.flatMap(({ words }) => words.slice(0, -1))) {
    t.ok(existsSync(join(root, path)), `${path} exists`)
    t.ok(inContext(ignored, path), `${path} is let in`)
  }
  for (const path of ['.git', '.env', 'node_modules', 'dist', 'test', 'README.md', 'config/examples'])
    t.notOk(inContext(ignored, path), `${path} is left out`)
  t.notMatch(text('.npmrc'), /_auth|token|password/i)
})

t.test('the bridge accepts the arguments of every `docker run` in the documents', async (t) => {
  const examples = readdirSync(join(root, 'config/examples')).map((file) => [`/etc/mcp-bridge/${file}`, file] as const)
  const files = new Map<string, string>(examples.map(([path, file]) => [path, text(`config/examples/${file}`)]))
  for (const [, path = ''] of [...files.values()].join().matchAll(/\$\{file:([^}]+)\}/g)) files.set(path, secret(path))
  const lines = ['README.md', 'docs/docker.md'].flatMap((path) =>
    [
      ...text(path)
        .replaceAll(/\\\n\s*/g, '')
        .matchAll(/^docker run .*$/gm),
    ].map(([line]) => splitCommandLine(line)),
  )
  const [json = ''] = /"args": (\[\s+"run"[^\]]+\])/.exec(text('docs/docker.md'))?.slice(1) ?? []
  const commands = [...lines, JSON.parse(json) as string[]]
  t.ok(commands.length >= 6)
  for (const words of commands) {
    const args = words.slice(words.findLastIndex((word) => /^mcp-bridge(?::tools)?$/.test(word)) + 1)
    // Of the environment, a container gets what the command names.
    const given = words.filter((_, i) => words[i - 1] === '-e').map((word) => word.split('=')[0] ?? '')
    const env = Object.fromEntries(given.map((name) => [name, `${name}-of-the-environment`]))
    t.equal(commandIn(t, args, files, { AUTH: 'Bearer x', ...env }).kind, 'run', words.join(' '))
    if (!words.includes('--read-only')) continue
    for (const flag of ['--cap-drop=ALL', '--security-opt=no-new-privileges']) t.ok(words.includes(flag), flag)
  }
})

t.test('the copied files suffice on a read-only file system', async (t) => {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const files = join(folder, 'image')
  await assemble(join(folder, 'build'), files)
  readOnly(t, files)
  const before = listing(folder)
  const [, , node, ...own] = words('ENTRYPOINT')
  const main = own.at(-1) ?? ''
  t.equal(node, 'node')
  const health = join(temporaryFolder(t), 'health')
  chmodSync(dirname(health), 0o777)
  const given = {
    ...variables,
    PATH: environment['PATH'],
    HOME: join(files, 'nowhere'),
    MCP_BRIDGE_HEALTH_FILE: health,
  }
  const env = Object.entries(given)
  // By way of env, because the test runner puts variables of its own into the environment of every child.
  const clean = ['-i', ...env.map(([name, value]) => `${name}=${value}`)]
  const start = (t: Test, args: string[], more: string[] = []) =>
    watchProgram(
      t,
      spawn('env', [...clean, ...more, execPath, join(files, main), ...args], { cwd: files, ...identity(t) }),
    )
  /** What HEALTHCHECK says of the bridge that was started last. */
  const checked = async (t: Test) => {
    const [shell = '', script = ''] = healthcheck
    const check = watchProgram(t, spawn('env', [...clean, shell, join(files, script)]))
    return { code: await check.ended, said: check.stdout() }
  }

  await t.test('the image serves as a gateway', async (t) => {
    t.match(await checked(t), { code: 1, said: /no bridge serves here/ }, 'before it is started')
    const args = ['--log-format', 'json', '--', execPath, '-e', SERVER]
    const program = start(t, ['--listen', 'http://127.0.0.1:0/mcp', ...args])
    const [url] = await says(program, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
    const answer = await call(url, 'tools/call', { name: 'x', arguments: {} })
    t.match(answer.message, { result: { content: [{ text: 'called' }] } })
    t.match(await checked(t), { code: 0, said: /serving/ })

    program.child.kill('SIGTERM')
    t.equal(await program.ended, 0)
    t.match(await checked(t), { code: 1, said: /no bridge serves here/ }, 'and when it is gone')
  })

  await t.test('the image serves on stdio', async (t) => {
    await speaksStdio(t, start(t, ['--listen', 'stdio', '--', execPath, '-e', SERVER]))
  })

  await t.test('the image serves with all modules that are loaded on demand', async (t) => {
    const config = join(temporaryFolder(t), 'config.json')
    const settings = {
      mcpServers: { one: { command: execPath, args: ['-e', SERVER] } },
      listen: 'http://127.0.0.1:0/mcp',
      admin: 'http://127.0.0.1:0',
      // Nobody is there: whoever has loaded the client says that, and goes on.
      redis: { url: 'redis://127.0.0.1:1' },
      stateKeys: [secret('state')],
      log: { format: 'pretty' },
    }
    writeFileSync(config, JSON.stringify(settings))
    chmodSync(dirname(config), 0o755)
    const program = start(t, ['--config', config], ['OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1'])
    const [url] = await says(program, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
    const answer = await call(url, 'tools/call', { name: 'x', arguments: {} })
    t.match(answer.message, { result: { content: [{ text: 'called' }] } })
    await says(program, /Redis is unavailable/)
    t.notMatch(program.stderr(), /TypeError|Cannot find/)
  })

  t.same(listing(folder), before, 'nothing has been written')
})

/** Makes the files of the image as the Dockerfile says, but for what is installed and downloaded. */
async function assemble(build: string, files: string): Promise<void> {
  const at = (folder: string, path: string, workdir = '') =>
    join(folder, path.startsWith('/') ? path : join(workdir, path))
  for (const { name, words, text } of stage('build').instructions) {
    if (name === 'COPY')
      copy(words.map((path, i) => (i < words.length - 1 ? join(root, path) : at(build, path, '/app'))))
    else if (text.startsWith('npm ci')) symlinkSync(join(root, 'node_modules'), at(build, 'node_modules', '/app'))
    else if (name === 'RUN') await run('sh', ['-c', text], { cwd: at(build, '/app') })
  }
  for (const { flags, words } of named(image, 'COPY')) {
    // What is installed and compiled is in stages of their own.
    if (!['build', undefined].includes(flags['from'])) continue
    const source = flags['from'] === undefined ? root : build
    copy(words.map((path, i) => at(i < words.length - 1 ? source : files, path)))
  }
}

/** COPY: into a folder if its name ends like one, and of folders what is in them. */
function copy(paths: readonly string[]): void {
  const target = paths.at(-1) ?? ''
  for (const source of paths.slice(0, -1)) {
    const to =
      target.endsWith('/') && !statSync(source).isDirectory() ? join(target, source.replace(/^.*\//, '')) : target
    mkdirSync(dirname(to), { recursive: true })
    cpSync(source, to, { recursive: true })
  }
}

function readOnly(t: Test, folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o555 : 0o444)
  chmodSync(folder, 0o555)
  t.teardown(() => execFileSync('chmod', ['-R', 'u+w', folder]))
}

function listing(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.includes('node_modules'))
    .sort()
}

/** Root could write anywhere: then it is run as the user that the image names, if that one can run this Node.js. */
function identity(t: Test): { uid?: number; gid?: number } {
  if (getuid?.() !== 0) return {}
  const other = { uid: Number(user), gid: Number(group) }
  if (spawnSync(execPath, ['--version'], other).status === 0) return other
  t.comment(`as root: the user ${user} cannot start ${execPath}`)
  return {}
}

async function speaksStdio(t: Test, program: Program): Promise<void> {
  program.child.stdin.write(INITIALIZE)
  await until(() => program.stdout().includes('\n'), `an answer (${program.stderr()})`)
  t.match(JSON.parse(program.stdout()), { id: 1, result: { serverInfo: { name: 's' } } })
  program.child.stdin.end()
  t.equal(await program.ended, 0, 'it ends with its input')
}

/** Run in the container: what the process has been left with. */
const CONFINEMENT = `const { readFileSync, writeFileSync } = require('node:fs')
const status = (name) => new RegExp(name + ':\\\\s*(\\\\S+)').exec(readFileSync('/proc/1/status', 'utf8'))?.[1]
const writes = (path) => { try { writeFileSync(path, ''); return true } catch { return false } }
console.log(JSON.stringify({
  name: status('Name'), user: status('Uid'), capabilities: status('CapBnd'), noNewPrivileges: status('NoNewPrivs'),
  writes: ['/x', '/app/x', '/app/dist/main.js', '/etc/passwd'].filter(writes), temporary: writes('/tmp/x'),
}))`

t.test('builds the image, and runs it without root, capabilities and a writable file system', async (t) => {
  const built = await build(t)
  if (typeof built === 'string') {
    t.pass('nothing is run in a container here', { skip: built })
    return
  }
  const { engine, image } = built
  const hardened = [
    ...['run', '--rm', '-i', '--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'],
    ...[`--user=${user}:${group}`, '--tmpfs=/tmp'],
  ]
  const start = (t: Test, options: string[], args: string[]) =>
    watchProgram(t, spawn(engine, [...hardened, ...options, image, ...args]) as ChildProcessWithoutNullStreams)

  await t.test('as a gateway', async (t) => {
    const name = `mcp-bridge-test-${randomBytes(4).toString('hex')}`
    t.teardown(() => spawnSync(engine, ['rm', '--force', name]))
    const program = start(
      t,
      [`--name=${name}`, '--publish=127.0.0.1::8080'],
      ['--listen', 'http://0.0.0.0:8080/mcp', '--allow-unauthenticated', '--', 'node', '-e', SERVER],
    )
    await says(program, /"event":"server_ready"/)
    const { stdout: address } = await run(engine, ['port', name, '8080'])
    const answer = await call(`http://${address.trim().split('\n')[0]}/mcp`, 'tools/call', { name: 'x', arguments: {} })
    t.match(answer.message, { result: { content: [{ text: 'called' }] } })

    const { stdout } = await run(engine, ['exec', name, 'node', '-e', CONFINEMENT])
    t.same(JSON.parse(stdout), {
      name: 'tini',
      user,
      capabilities: '0000000000000000',
      noNewPrivileges: '1',
      writes: [],
      temporary: true,
    })
    const check = await run(engine, ['exec', name, ...healthcheck])
    t.match(check.stdout, /serving/)
    await run(engine, ['kill', '--signal=TERM', name])
    t.equal(await program.ended, 0, 'it ends when it is told to')
  })

  await t.test('on stdio', async (t) => {
    await speaksStdio(t, start(t, [], ['--listen', 'stdio', '--', 'node', '-e', SERVER]))
  })
})

/** An image to run, and what runs it; or why there is none. */
async function build(t: Test): Promise<{ engine: string; image: string } | string> {
  const quietly = (engine: string, args: string[], timeout: number) =>
    run(engine, args, { timeout, maxBuffer: 16 * 1024 * 1024 }).then(
      () => undefined,
      (error: Error & { stderr?: string }) => error.stderr?.trim().split('\n').at(-1) || error.message,
    )
  const engines = ['docker', 'podman']
  const answers = await Promise.all(engines.map((engine) => quietly(engine, ['info'], 10_000)))
  const engine = engines[answers.indexOf(undefined)]
  if (engine === undefined) return `no container engine answers: ${answers.join('; ')}`
  const given = environment['MCP_BRIDGE_IMAGE']
  if (given !== undefined) return { engine, image: given }
  const { from } = stage('debian')
  const missing =
    (await quietly(engine, ['image', 'inspect', from], 10_000)) && (await quietly(engine, ['pull', from], 120_000))
  if (missing) return `${engine} cannot get ${from}: ${missing}`
  // Packages are downloaded, which takes what it takes.
  t.parent?.setTimeout(900_000)
  t.setTimeout(900_000)
  const tag = 'mcp-bridge:test'
  const failure = await run(engine, ['build', '--tag', tag, root], { maxBuffer: 16 * 1024 * 1024 }).then(
    () => undefined,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  )
  const offline = /npm error (?:code|network) .*|Failed to fetch .*|Temporary failure .*/i.exec(failure ?? '')
  if (offline) return `what ${engine} needs to build cannot be had: ${offline[0]}`
  t.equal(failure, undefined, 'it builds')
  return { engine, image: tag }
}
