/** What `npm pack` makes: it runs from its tarball, in a folder where nothing else is. */
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { says, startProgram } from './support/cli.js'
import { temporaryFolder } from './support/folder.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call } from './support/modern.js'
import { noRedis, RedisServer } from './support/redis.js'
import { copyOfSource } from './support/source.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))
/** What npm says of a package that it would publish. */
interface Published {
  files: { path: string }[]
}

const source = copyOfSource(t)
const folder = temporaryFolder(t)
const manifestBefore = readFileSync(join(source, 'package.json'), 'utf8')
await run('npm', ['pack', '--pack-destination', folder], { cwd: source })
const [tarball = ''] = readdirSync(folder)

const noClone = !existsSync(join(root, '.git')) && 'this is no clone'
t.test('a clean clone can be published, with what users need and nothing else', { skip: noClone }, async (t) => {
  const clone = join(temporaryFolder(t), 'clone')
  await run('git', ['clone', '--quiet', '--local', root, clone])
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'), 'junction')
  // Nothing listens there: a dry run asks no registry.
  const registry = ['--registry', 'http://127.0.0.1:9/', '--fetch-retries', '0']
  const args = ['publish', '--dry-run', '--json', '--access', 'public', '--tag', 'latest', ...registry]
  const { stdout } = await run('npm', args, { cwd: clone, maxBuffer: 64 * 1024 * 1024 })
  const said = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Published | { 'mcp-bridge': Published }
  const { files } = 'files' in said ? said : said['mcp-bridge']
  const paths = files.map(({ path }) => path)
  for (const path of [
    'dist/main.js',
    'dist/index.cjs',
    'dist/types/app/embed/index.d.ts',
    'docs/README.md',
    'CHANGELOG.md',
  ])
    t.ok(paths.includes(path), path)
  t.same(
    paths.filter((path) => /^(?:src|test|\.ci|\.github|docs\/(?:development|api))\//.test(path)),
    [],
  )
  const { stdout: left } = await run('git', ['status', '--porcelain'], { cwd: clone })
  t.equal(left.replace('?? node_modules\n', ''), '', 'the clone is as it was')
})

t.test('the package runs from its tarball in an empty folder, alone', async (t) => {
  t.equal(readFileSync(join(source, 'package.json'), 'utf8'), manifestBefore, "the developers' package.json is back")
  t.match(tarball, /^mcp-bridge-.*\.tgz$/)

  await run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--offline', '--no-save', '--prefix', folder, `./${tarball}`],
    { cwd: folder },
  )
  const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))
  t.same(installed, ['mcp-bridge'], 'no other package comes with it')
  const manifest = JSON.parse(readFileSync(join(folder, 'node_modules/mcp-bridge/package.json'), 'utf8')) as object
  for (const field of ['scripts', 'dependencies', 'devDependencies', 'overrides'])
    t.notOk(field in manifest, `the published package.json has no ${field}`)
  t.match(manifest, { name: 'mcp-bridge', engines: { node: /./ }, bin: { 'mcp-bridge': /./ } })
  for (const path of [
    'dist/sbom.cdx.json',
    'dist/LICENSES.txt',
    'dist/mcp-bridge.1',
    'LICENSE',
    'config/healthcheck.sh',
  ])
    t.ok(existsSync(join(folder, 'node_modules/mcp-bridge', path)), `${path} is in the package`)
  for (const path of ['docs/api', 'docs/development', 'test'])
    t.notOk(existsSync(join(folder, 'node_modules/mcp-bridge', path)), `${path} is for developers`)

  const exported = `import { createBridge } from 'mcp-bridge'; import plugin from 'mcp-bridge/fastify'
    const serve = (transport) => transport.start()
    const bridge = await createBridge({ mcpServers: { it: { serve } } })
    await bridge.close()
    console.log(typeof plugin)`
  writeFileSync(join(folder, 'importing.mjs'), exported)
  t.equal((await run(execPath, [join(folder, 'importing.mjs')])).stdout, 'function\n', 'programs import it')

  const bin = join(folder, 'node_modules/.bin/mcp-bridge')
  for (const [version, code] of [
    ['18.20.8', 1],
    ['20.18.3', 1],
    ['20.19.0', 0],
    ['24.0.0', 0],
  ] as const) {
    const versions = `{ ...process.versions, node: '${version}' }`
    const pretending = `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${versions} })`
    const ended = startProgram(t, ['--version'], {}, [execPath, '--import', pretending, bin])
    t.equal(await ended.ended, code, `11.25 Node.js ${version}`)
    const said = `mcp-bridge needs Node.js 20.19 or newer, and this is ${version}: install a newer one from https://nodejs.org\n`
    t.equal(ended.stderr(), code === 0 ? '' : said)
  }

  const server = legacyStdio(t).server
  const program = startProgram(
    t,
    ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--', server.command, ...server.args],
    {},
    [bin],
  )
  const [url] = await says(program, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  const answer = await call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
  t.equal(answer.status, 200)
  t.match(answer.message, { result: { resultType: 'complete' } })

  const demo = startProgram(t, ['demo', '--listen', 'http://127.0.0.1:0/mcp'], {}, [bin])
  await says(demo, /Ctrl-C ends the demo/)
  const [, demoUrl = ''] = await says(demo, /^ {2}(http\S+\/mcp) {2}for legacy and modern$/m)
  const weather = await call(demoUrl, 'tools/call', { name: 'legacy__weather', arguments: { city: 'Oslo' } })
  t.match(weather.message, { result: { content: [{ text: 'Oslo: 3 °C, snow' }] } }, 'the demo is in the package')

  if (noRedis) return t.comment(`not as a replica: ${noRedis}`)
  const redis = await RedisServer.start(t)
  const config = join(folder, 'config.json')
  const listen = 'http://127.0.0.1:0/mcp'
  const shared = { redis: { url: redis.url }, stateKeys: ['a secret that all the replicas know of'] }
  writeFileSync(config, JSON.stringify({ mcpServers: { it: server }, listen, log: { format: 'json' }, ...shared }))
  const replica = startProgram(t, ['--config', config], {}, [bin])
  await says(replica, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  t.notMatch(replica.stderr(), /redis_unavailable/, 'what is loaded only for replicas is there')
})

t.test('tools and TypeScript accept its exports and types', async (t) => {
  const tool = (...args: string[]) => run(execPath, ['.ci/tool.mjs', 'package', ...args], { cwd: root })
  const path = join(folder, tarball)
  await t.resolves(tool('publint', 'run', path, '--strict'), 'publint')
  // The plugin has its name `default` in CommonJS, too, as the types say. Plugins for Fastify can be used with and without it.
  const attw = tool('attw', path, '--profile', 'node16', '--ignore-rules', 'missing-export-equals')
  await t.resolves(attw, 'arethetypeswrong')
  await run('npm', ['run', 'build'], { cwd: root })
  await t.resolves(run(execPath, ['.ci/api.mjs', '--check'], { cwd: root }), 'the reports in docs/api are fresh')
  const published = readdirSync(join(root, 'dist/types'), { recursive: true, encoding: 'utf8' })
  const embed = ['create', 'fastify', 'file-options', 'index', 'options', 'plugin'].map((name) => `app/embed/${name}`)
  for (const ending of ['.d.ts', '.d.cts'])
    t.same(
      published.filter((name) => name.endsWith(ending)).sort(),
      [...embed, 'mcp/ports/transport'].map((name) => name + ending),
      'nothing internal has types',
    )
})

t.test('a pack after a build builds nothing, and one after a change does', async (t) => {
  const files = ['dist/bridge.cjs', 'dist/types/app/embed/index.d.ts'].map((path) => join(source, path))
  const times = () => files.map((file) => statSync(file).mtimeMs)
  const pack = () => run('npm', ['pack', '--dry-run'], { cwd: source })
  await pack()
  const built = times()
  await pack()
  t.same(times(), built)
  for (const file of files) utimesSync(file, 0, 0)
  await pack()
  t.notOk(times().includes(0))
})

t.test('npx runs the tarball, with nothing else to fetch', async (t) => {
  const empty = temporaryFolder(t)
  const env = { ...process.env, npm_config_cache: join(empty, 'cache'), npm_config_offline: 'true' }
  copyFileSync(join(folder, tarball), join(empty, tarball))
  const { stdout } = await run('npx', ['-y', `./${tarball}`, '--version'], { cwd: empty, env })
  t.match(stdout, /^\d+\.\d+\.\d+\n$/)
})

t.test('a killed pack leaves nothing that the next one would take for the manifest', async (t) => {
  const before = readFileSync(join(source, 'package.json'), 'utf8')
  const manifest = (task: string) => run(execPath, ['.ci/manifest.mjs', task], { cwd: source })
  await manifest('publish')
  const published = readFileSync(join(source, 'package.json'), 'utf8')
  t.not(published, before)
  await manifest('publish')
  t.equal(readFileSync(join(source, 'package.json'), 'utf8'), published)
  await manifest('restore')
  t.equal(readFileSync(join(source, 'package.json'), 'utf8'), before)
  await manifest('restore')
  t.equal(readFileSync(join(source, 'package.json'), 'utf8'), before, 'once more changes nothing')
})

t.test('the same sources in another folder give the same bytes', async (t) => {
  const other = temporaryFolder(t)
  await run('npm', ['pack', '--pack-destination', other], { cwd: copyOfSource(t) })
  const bytes = readFileSync(join(other, tarball))
  t.ok(bytes.equals(readFileSync(join(folder, tarball))), `${bytes.length} bytes`)
})

t.test('no package requires a newer Node.js than the bridge does', async (t) => {
  const folder = temporaryFolder(t)
  for (const name of ['package.json', 'package-lock.json'])
    writeFileSync(join(folder, name), readFileSync(new URL(`../${name}`, import.meta.url)))
  const args = ['ci', '--dry-run', '--engine-strict', '--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  await t.resolves(run('npm', args, { cwd: folder }), 'on this Node.js')
})
