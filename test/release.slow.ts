/** What is released, step by step: the scripts that the workflow of releases runs. Programs that publish are stood in for. */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { env, execPath, versions } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parseCommand } from '../src/command/parse.js'
import { packageOf } from '../src/services/discovery/sources/server-json.js'
import { atLeast } from './support/at-least.js'
import { temporaryFolder } from './support/folder.js'
import { copyOfSource } from './support/source.js'
import { inTools, lacks, missing, runTool } from './support/tools.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))
const text = (path: string, folder = root) => readFileSync(join(folder, path), 'utf8')
const json = <T>(path: string, folder = root) => JSON.parse(text(path, folder)) as T
const { version, repository, mcpName } = json<{ version: string; repository: { url: string }; mcpName: string }>(
  'package.json',
)
const noBash = lacks('bash', ['--version'])

t.test('the version is the same everywhere', async (t) => {
  const { stderr } = await run(execPath, ['.ci/version.mjs', '--check'], { cwd: root })
  t.equal(stderr, '')
})

t.test(
  'a tag is refused unless it is the version, with its changelog, and pages say that it is published',
  async (t) => {
    const folder = released(t)
    const check = (tag: string) => run(execPath, ['.ci/version.mjs', '--check', tag], { cwd: folder })
    mkdirSync(join(folder, '.changeset'), { recursive: true })
    writeFileSync(join(folder, '.changeset/some-change.md'), '')
    writeFileSync(join(folder, 'docs/clients.md'), '# Clients\n\nThe image is not published yet.\n')
    await t.rejects(check(`v${version}`), /^\.changeset\/some-change\.md waits: npm run changeset:version$/m)
    await t.rejects(check(`v${version}`), /^docs\/clients\.md:3 says that something is not published: The image/m)
    await t.rejects(check('v99.0.0'), /the tag is v99\.0\.0/)
    publish(folder)
    await check(`v${version}`)
  },
)

t.test('writes a new version everywhere, and earlier changes belong to it', async (t) => {
  const folder = released(t)
  const manifest = text('package.json', folder)
  writeFileSync(join(folder, 'package.json'), manifest.replace(`"version": "${version}"`, '"version": "7.8.9-rc.1"'))
  const changelog = '# Changelog\n\n## Unreleased\n\n- A line.\n\n## 0.0.1\n\n- Another.\n'
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  const script = (...args: string[]) => run(execPath, ['.ci/version.mjs', ...args], { cwd: folder })
  await t.rejects(script('--check'), new RegExp(`Chart\\.yaml: ${version.replaceAll('.', '\\.')}`))
  await script()
  await script('--check')
  t.match(text('package-lock.json', folder), '"version": "7.8.9-rc.1"')
  t.match(text('config/helm/mcp-bridge/Chart.yaml', folder), /^appVersion: 7\.8\.9-rc\.1$/m)
  t.match(text('server.json', folder), '"identifier": "ghcr.io/mcp-bridge/mcp-bridge:7.8.9-rc.1"')
  t.match(await script('--notes', '7.8.9-rc.1'), { stdout: '- A line.\n' })
  t.equal(text('CHANGELOG.md', folder), changelog.replace('Unreleased', '7.8.9-rc.1'))
  await t.rejects(script('--notes', '1.0.0'), /CHANGELOG\.md says nothing of 1\.0\.0/)
})

t.test('the notes of a version are those for people, and a page has all its changes', async (t) => {
  const folder = released(t)
  const made = `## ${version}\n\n### Minor Changes\n\n- One of many.\n\n`
  const changelog = `# Changelog\n\n${made}## Unreleased\n\n- For people.\n\n## 0.0.1\n\n- Another.\n`
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  const script = (...args: string[]) => run(execPath, ['.ci/version.mjs', ...args], { cwd: folder })
  await script()
  t.match((await script('--notes', version)).stdout, /^- For people\.\n\n\[All changes\]\(https:\S+\.md\)\.\n$/)
  t.match(text('CHANGELOG.md', folder), '\n\n## 0.0.1\n\n- Another.\n')
  const page = text(`docs/development/changes/${version}.md`, folder)
  t.equal(page, `# All changes of ${version}\n\n### Minor Changes\n\n- One of many.\n\n`)
})

t.test('what a version brings fits on one screen', async (t) => {
  const sections = text('CHANGELOG.md').split(/^## /m).slice(1)
  for (const section of atLeast(t, 1, 'versions', sections)) {
    const [name = ''] = section.split('\n')
    t.ok(section.trim().split('\n').length <= 60, name)
  }
  const folder = publish(released(t))
  writeFileSync(join(folder, 'CHANGELOG.md'), `# Changelog\n\n## ${version}\n\n${'- A line.\n'.repeat(70)}`)
  const checked = run(execPath, ['.ci/version.mjs', '--check', `v${version}`], { cwd: folder })
  await t.rejects(checked, /CHANGELOG\.md has more than 60 lines/)
})

const noChangesets = missing('release') || (Number.parseInt(versions.node, 10) < 22 && 'changesets needs Node.js 22')
t.test('a changeset becomes a version and a line of the changelog', { skip: noChangesets }, async (t) => {
  const folder = released(t)
  // Without those that wait for the next release: what they say is no matter here.
  mkdirSync(join(folder, '.changeset'))
  cpSync(join(root, '.changeset/config.json'), join(folder, '.changeset/config.json'))
  const changeset = '---\n"mcp-bridge": minor\n---\n\nIt can do more.\n'
  writeFileSync(join(folder, '.changeset/some-change.md'), changeset)
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: folder })
  await git('init', '--quiet')
  await git('add', '--all', '.')
  await git('commit', '--quiet', '--message', 'All')
  const program = inTools('release', '@changesets/cli/bin.js')
  await run(execPath, [program, 'version'], { cwd: folder })
  await run(execPath, ['.ci/version.mjs'], { cwd: folder })
  const [major, minor] = version.split('.').map(Number)
  const next = `${major}.${Number(minor) + 1}.0`
  await run(execPath, ['.ci/version.mjs', '--check'], { cwd: folder })
  t.match(text('package.json', folder), `"version": "${next}"`)
  const notes = await run(execPath, ['.ci/version.mjs', '--notes'], { cwd: folder })
  t.match(notes.stdout, /^### New\n/, 'people read what was written for them')
  t.match(text(`docs/development/changes/${next}.md`, folder), '### Minor Changes\n\n- It can do more.\n')
  t.match(text('CHANGELOG.md', folder), /^# Changelog\n\n## /)
})

t.test('a change of what ships requires a changeset, and others do not', { skip: noBash }, async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, '.ci'))
  cpSync(join(root, '.ci/changeset'), join(folder, '.ci/changeset'))
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: folder })
  const commit = async (path: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), '')
    await git('add', '--all', '.')
    await git('commit', '--quiet', '--message', path)
  }
  const check = () => run('bash', ['.ci/changeset', 'before'], { cwd: folder })
  await git('init', '--quiet')
  await commit('src/main.ts')
  await git('tag', 'before')
  await commit('test/some.test.ts')
  await check()
  await commit('src/other.ts')
  await t.rejects(check(), /npm run changeset -- --empty/)
  await commit('.changeset/some-change.md')
  await check()
})

t.test('a commit needs a short subject, and a body that says why', { skip: noBash }, async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, '.ci'))
  cpSync(join(root, '.ci/commits'), join(folder, '.ci/commits'))
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: folder })
  const commit = (message: string) => git('commit', '--quiet', '--allow-empty', '--message', message)
  const check = () => run('bash', ['.ci/commits', 'before'], { cwd: folder })
  await git('init', '--quiet')
  await commit('Long ago')
  await git('tag', 'before')
  await commit(`${'x'.repeat(72)}\n\nBecause it fits.`)
  await check()
  await commit('No reason')
  await t.rejects(check(), /has no body that says why: No reason/)
  await git('tag', '--force', 'before')
  await commit(`${'y'.repeat(73)}\n\nBecause.`)
  await t.rejects(check(), /has 73 characters, and may have 72/)
})

t.test('packs a release once, with its checksums', { skip: noBash || missing('kubernetes') }, async (t) => {
  const folder = publish(released(t, copyOfSource(t)))
  const tools = standIns(t, ['npm'], {
    npm: `#!/bin/sh\n[ "$1" = audit ] && echo '{"vulnerabilities":{}}' || exec "$NPM" "$@"\n`,
  })
  const npm = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim()
  const PATH = [tools.folder, inTools('kubernetes', '.bin'), env['PATH']].join(delimiter)
  const options = { cwd: folder, env: { ...env, PATH, NPM: npm } }
  await run('bash', ['.ci/package', 'release', `v${version}`], options)
  const files = readdirSync(join(folder, 'release'), { recursive: true }).map(String).sort()
  t.same(
    files.filter((file) => file.includes('.') || file === 'SHA256SUMS'),
    [
      'SHA256SUMS',
      `helm/mcp-bridge-${version}.tgz`,
      'mcp-bridge.mcpb',
      'mcp-bridge.tar.gz',
      `npm/mcp-bridge-${version}.tgz`,
      'sbom.cdx.json',
      'server.json',
    ],
  )
  const entry = readFileSync(join(folder, 'release/server.json'), 'utf8')
  const [sum] = spawnSync('sha256sum', ['release/mcp-bridge.mcpb'], { cwd: folder, encoding: 'utf8' }).stdout.split(' ')
  t.match(entry, `"fileSha256": "${sum}"`, 'the entry for the registry names the extension')
  const unpacked = temporaryFolder(t)
  spawnSync('tar', ['-xzf', join(folder, 'release/mcp-bridge.tar.gz'), '-C', unpacked])
  const started = spawnSync('npm', ['start', '--silent', '--', '--version'], {
    cwd: join(unpacked, 'mcp-bridge'),
    encoding: 'utf8',
  })
  t.equal(started.stdout, `${version}\n`, `the archive starts without packages for developers: ${started.stderr}`)
  const sums = spawnSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(folder, 'release') })
  t.equal(sums.status, 0)
  const rendered = runTool('kubernetes', 'helm', [
    'show',
    'chart',
    join(folder, `release/helm/mcp-bridge-${version}.tgz`),
  ])
  t.match(rendered.stdout, `appVersion: ${version}`)
  await t.rejects(run('bash', ['.ci/package', 'release', 'v99.0.0'], options), /the tag is v99\.0\.0/)
})

t.test('a release publishes the package, the images and the chart', { skip: noBash }, async (t) => {
  const tools = standIns(t, ['docker', 'helm', 'npm', 'gh', 'git'])
  const folder = temporaryFolder(t)
  for (const path of ['npm/mcp-bridge-1.2.3.tgz', 'helm/mcp-bridge-1.2.3.tgz', 'sbom.cdx.json', 'SHA256SUMS']) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), '')
  }
  const script = async (args: string[], more: Record<string, string> = {}) => {
    writeFileSync(tools.log, '')
    await run('bash', args, { cwd: root, env: { ...env, PATH: [tools.folder, env['PATH']].join(delimiter), ...more } })
    return readFileSync(tools.log, 'utf8')
  }

  const published = await script(['.ci/publish', `${folder}/npm/mcp-bridge-1.2.3.tgz`])
  t.match(published, /^npm publish \S+mcp-bridge-1\.2\.3\.tgz --provenance --access public --tag latest$/m)
  t.match(await script(['.ci/publish', 'npm/mcp-bridge-1.2.3-rc.1.tgz']), '--tag next')

  const output = join(folder, 'output')
  const image = await script(['.ci/image', 'publish', 'ghcr.io/a/b', '1.2.3'], { GITHUB_OUTPUT: output })
  const builds = image.split('\n').filter((line) => line.startsWith('docker buildx build'))
  t.equal(builds.length, 2, 'both variants')
  for (const part of ['--platform linux/amd64,linux/arm64', '--sbom=true', '--provenance=mode=max', '--push'])
    for (const line of builds) t.ok(line.includes(part), part)
  t.match(builds[0], /--target slim .*--tag ghcr\.io\/a\/b:1\.2\.3 --tag ghcr\.io\/a\/b:latest /)
  t.match(builds[1], /--target tools .*--tag ghcr\.io\/a\/b:1\.2\.3-tools --tag ghcr\.io\/a\/b:latest-tools /)
  t.equal(readFileSync(output, 'utf8'), 'slim=sha256:0123\ntools=sha256:0123\n')
  const candidate = await script(['.ci/image', 'publish', 'ghcr.io/a/b', '1.2.3-rc.1'], { GITHUB_OUTPUT: output })
  t.notMatch(candidate, 'latest', 'what is only to be tried is not the latest')
  const built = await script(['.ci/image', 'build', 'mcp-bridge:ci'])
  t.match(built, /--load --target slim --tag mcp-bridge:ci \.$/m)
  t.match(built, /--load --target tools --tag mcp-bridge:ci-tools \.$/m)
  const checked = await script(['.ci/image', 'check'])
  for (const variant of ['slim', 'tools'])
    t.match(
      checked,
      new RegExp(`--platform linux/amd64,linux/arm64 --target ${variant} --output type=cacheonly \\.$`, 'm'),
    )

  const chart = await script(['.ci/chart', 'publish', `${folder}/helm`, 'oci://ghcr.io/a/charts'])
  t.match(chart, /^helm push \S+\/helm\/mcp-bridge-1\.2\.3\.tgz oci:\/\/ghcr\.io\/a\/charts$/m)

  const login = await script(['.ci/login', 'ghcr.io'], { REGISTRY_USER: 'me', REGISTRY_TOKEN: 'a-secret' })
  t.match(login, /^docker login ghcr\.io --username me --password-stdin$/m)
  t.match(login, /^helm registry login ghcr\.io --username me --password-stdin$/m)
  t.notMatch(login, 'a-secret', 'no list of processes shows the token')
})

t.test('announces a release with its notes and all its files', { skip: noBash }, async (t) => {
  const folder = released(t)
  const changelog = `# Changelog\n\n## ${version}\n\n- What is new.\n`
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  const executables = ['executable/mcp-bridge-linux-x64.tar.gz', 'executable/mcp-bridge_amd64.deb']
  const packages = ['npm/mcp-bridge.tgz', 'helm/mcp-bridge.tgz', 'mcp-bridge.mcpb', ...executables]
  const files = [...packages, 'sbom.cdx.json', 'SHA256SUMS']
  for (const path of files) {
    mkdirSync(join(folder, 'release', path, '..'), { recursive: true })
    writeFileSync(join(folder, 'release', path), '')
  }
  await run('bash', ['.ci/checksums', 'release'], { cwd: folder })
  const sums = text('release/SHA256SUMS', folder)
  for (const path of executables) t.match(sums, new RegExp(`^[0-9a-f]{64} .${path}$`, 'm'), `the checksum of ${path}`)
  const tools = standIns(t, ['gh'], {
    gh: `#!/bin/sh\necho "gh $*" >>"$LOG"\nwhile [ "$1" != --notes-file ]; do shift; done\ncat "$2" >>"$LOG"\n`,
  })
  const PATH = [tools.folder, env['PATH']].join(delimiter)
  await run('bash', ['.ci/announce', `v${version}`, 'release'], { cwd: folder, env: { ...env, PATH, LOG: tools.log } })
  const said = readFileSync(tools.log, 'utf8')
  t.match(said, `gh release create v${version} --verify-tag`)
  for (const path of files) t.ok(said.includes(` release/${path}`), path)
  t.match(said, '\n- What is new.\n')
})

t.test('the entry for the MCP registry is of this package, and its commands are those of the bridge', async (t) => {
  const entry = json<{
    name: string
    description: string
    version: string
    repository: { url: string }
    packages: { registryType: string; identifier: string; version?: string; transport: object }[]
  }>('server.json')
  // What the registry refuses: https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
  t.match(entry.name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  t.ok(entry.description.length <= 100)
  t.equal(entry.name, mcpName, 'npm says that it belongs to this package')
  t.match(text('Dockerfile'), `io.modelcontextprotocol.server.name="${mcpName}"`, 'and the image')
  t.equal(`git+${entry.repository.url}.git`, repository.url)
  const [npm, oci, mcpb] = entry.packages
  t.match(npm, { registryType: 'npm', identifier: 'mcp-bridge', version: entry.version })
  t.match(oci, {
    registryType: 'oci',
    identifier: `ghcr.io/mcp-bridge/mcp-bridge:${entry.version}`,
    version: undefined,
  })
  t.same(mcpb, {
    registryType: 'mcpb',
    identifier: `${entry.repository.url}/releases/download/v${entry.version}/mcp-bridge.mcpb`,
    transport: { type: 'stdio' },
  })
  for (const one of entry.packages.slice(0, 2)) {
    const { entry: started, wants } = packageOf(one)
    const args = started['args'] as string[]
    const own = args.slice(args.findIndex((arg) => arg.includes('mcp-bridge')) + 1)
    t.match(own.join(' '), '--listen stdio --upstream')
    t.same(wants?.filter((want) => !want.includes('upstream')) ?? [], [], 'only the server has to be named')
    const filled = ['--listen', 'stdio', '--upstream', 'https://example.com/mcp']
    t.match(parseCommand(filled, {}), { kind: 'run', settings: { listen: 'stdio' } })
  }
})

t.test('the same repository is named everywhere', async (t) => {
  const [, slug = ''] = /github\.com\/(.+)\.git$/.exec(repository.url) ?? []
  for (const path of [
    'SECURITY.md',
    'config/helm/mcp-bridge/Chart.yaml',
    '.github/ISSUE_TEMPLATE/bug.yml',
    'server.json',
  ])
    for (const [named] of atLeast(
      t,
      1,
      `addresses in ${path}`,
      text(path).matchAll(/(?<=github\.com\/)mcp-bridge\/[\w-]+/g),
    ))
      t.equal(named, slug, path)
  for (const path of ['config/helm/mcp-bridge/values.yaml', 'config/kubernetes/kustomization.yaml'])
    t.match(text(path), `ghcr.io/${slug}`, path)
})

/** A copy of what has the version in it, and of the scripts. */
function released(t: Test, folder = temporaryFolder(t)): string {
  const paths = [
    '.ci',
    '.dockerignore',
    'CHANGELOG.md',
    'Dockerfile',
    'README.md',
    'config',
    'docs',
    'package-lock.json',
    'package.json',
    'server.json',
  ]
  const filter = (path: string) => !path.includes('/.ci/tools')
  for (const path of paths) cpSync(join(root, path), join(folder, path), { recursive: true, filter })
  return folder
}

/** Makes a copy what it is on the day of its release: no changeset waits, and no page says that nothing is published. */
function publish(folder: string): string {
  rmSync(join(folder, '.changeset'), { recursive: true, force: true })
  const pages = ['docs', 'config'].flatMap((path) =>
    readdirSync(join(folder, path), { recursive: true }).map((name) => join(path, String(name))),
  )
  for (const path of ['README.md', ...pages].filter((page) => /\.(?:md|yaml)$/.test(page)))
    writeFileSync(
      join(folder, path),
      text(path, folder).replace(/not (?:on the npm registry|published) yet|is published yet/g, ''),
    )
  return folder
}

/** Programs that only write down how they were called, or do what a text says. */
function standIns(t: Test, names: string[], texts: Record<string, string> = {}): { folder: string; log: string } {
  const folder = temporaryFolder(t)
  const log = join(folder, 'log')
  const metadata = `while [ $# -gt 0 ]; do [ "$1" = --metadata-file ] && echo '{"containerimage.digest":"sha256:0123"}' >"$2"; shift; done`
  for (const name of names) {
    writeFileSync(join(folder, name), texts[name] ?? `#!/bin/sh\necho "${name} $*" >>'${log}'\n${metadata}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  return { folder, log }
}
