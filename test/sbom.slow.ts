/** What is in the bundle, and what is said of it: dependencies, SBOM, licences, and known vulnerabilities. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'
import { build } from 'esbuild'
import t from 'tap'
import { copyOfSource } from './support/source.js'

interface Component {
  group?: string
  name: string
  version: string
  purl: string
  licenses?: object[]
}
interface Manifest {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  version: string
}

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))
const read = <T>(path: string) => JSON.parse(readFileSync(path, 'utf8')) as T
const nameOf = ({ group, name }: Component) => (group === undefined ? name : `${group}/${name}`)
const manifest = read<Manifest>(join(root, 'package.json'))

t.test('`dependencies` are the packages that the bridge imports, and include no tools', async (t) => {
  const options = { bundle: true, packages: 'external', platform: 'node', format: 'esm', write: false } as const
  const { metafile } = await build({
    ...options,
    absWorkingDir: root,
    entryPoints: ['src/entry.ts', 'src/inspector/check/worker.ts', 'src/inspector/page/main.ts'],
    metafile: true,
    splitting: true,
    outdir: 'dist',
  })
  const imports = Object.values(metafile.outputs).flatMap(({ imports }) => imports)
  const packages = imports
    .filter(({ external, path }) => external === true && !path.startsWith('node:'))
    .map(({ path }) => /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] as string)
  t.same(Object.keys(manifest.dependencies).sort(), [...new Set(packages)].sort())
  for (const name of Object.keys(manifest.dependencies)) t.notOk(name in manifest.devDependencies, name)
})

t.test('the build lists the content of the bundle', async (t) => {
  const source = copyOfSource(t)
  const { stdout, stderr } = await run(execPath, ['.ci/build.mjs'], { cwd: source })
  t.same([stdout, stderr], ['', ''], 'it has nothing to say of itself')
  const text = readFileSync(join(source, 'dist/sbom.cdx.json'), 'utf8')
  const sbom = JSON.parse(text) as { metadata: { component: Component }; components: Component[] }

  t.equal(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text), null, 'it is CycloneDX 1.6')
  t.match(sbom.metadata.component, { name: 'mcp-bridge', version: manifest.version })
  const { packages } = read<{ packages: Record<string, { version: string }> }>(join(root, 'package-lock.json'))
  const locked = Object.entries(packages).map(
    ([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`,
  )
  const licences = readFileSync(join(source, 'dist/LICENSES.txt'), 'utf8')
  for (const component of sbom.components) {
    const name = nameOf(component)
    t.ok(locked.includes(`${name}@${component.version}`), `${name} is of the version in the lockfile`)
    t.match(component.purl, /^pkg:npm\//, `scanners know ${name} by its address`)
    t.ok(licences.includes(`${name} ${component.version} (`), `the licence of ${name} is there`)
  }
  const names = sbom.components.map(nameOf)
  for (const name of Object.keys(manifest.dependencies)) t.ok(names.includes(name), `${name} is in it`)
  for (const tool of ['tap', 'esbuild', 'tsx', 'typescript']) t.notOk(names.includes(tool), `${tool} is not`)

  await t.test('another build in another folder lists the same', async (t) => {
    const other = copyOfSource(t)
    await run(execPath, ['.ci/build.mjs'], { cwd: other })
    t.equal(readFileSync(join(other, 'dist/sbom.cdx.json'), 'utf8'), text)
  })

  await t.test('the audit finds what ships, and only that', async (t) => {
    const advisory = (title: string) => ({
      id: 1,
      url: `https://example.com/${title}`,
      title,
      severity: 'high',
      vulnerable_versions: '*',
      cwe: [],
    })
    // `tap` is for developers; of `dependencies`, `joycon` is one that pino-pretty needs only as a program.
    const advisories = { undici: [advisory('ships')], tap: [advisory('tool')], joycon: [advisory('unused')] }
    t.notOk(names.includes('joycon'))
    const registry = await startRegistry(advisories)
    t.teardown(() => registry.close())
    const found = await audit(source, registry.url)
    t.equal(found.code, 1)
    t.match(
      found.stdout,
      /^high: undici@\d.*: ships \(https:\/\/example\.com\/ships\)\n\d+ packages ship, with 1 known/,
    )
    registry.advisories = {}
    const clean = await audit(source, registry.url)
    t.match(clean, { code: 0, stdout: /^\d+ packages ship, with 0 known/ })
  })

  await t.test('without a registry, the audit says so, and fails only if it is strict', async (t) => {
    const nowhere = 'http://127.0.0.1:9/'
    t.match(await audit(source, nowhere), { code: 0, stdout: /could not be asked about \d+ packages/ })
    t.match(await audit(source, nowhere, '--strict'), { code: 1, stdout: /could not be asked/ })
  })
})

async function audit(cwd: string, registry: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  writeFileSync(join(cwd, '.npmrc'), `registry=${registry}\nfetch-retry-mintimeout=10\nfetch-retry-maxtimeout=10\n`)
  try {
    const { stdout } = await run(execPath, ['.ci/audit.mjs', ...args], { cwd })
    return { code: 0, stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, stdout }
  }
}

/** A registry that answers every audit with these advisories, whatever it is asked about, and knows no package. */
async function startRegistry(advisories: object) {
  const server = createServer((request, response) => {
    request.resume()
    const bulk = request.url?.endsWith('/security/advisories/bulk') ?? false
    response.writeHead(bulk ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(bulk ? registry.advisories : {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const registry = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    advisories,
    close: () => server.close(),
  }
  return registry
}
