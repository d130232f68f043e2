/**
 * The package.json that is published: `publish` puts it in the place of the developers', and `restore` takes it back. npm runs
 * both, before and after it packs.
 *
 * `dependencies` lists what is in the bundle, because that is where people and scanners look. Who installs the bundle has it
 * all already, so the published manifest names none of it, and nothing else that is for developers. What is in the bundle
 * stays visible in dist/sbom.cdx.json.
 */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { argv, chdir, exit, stderr } from 'node:process'
import { fileURLToPath } from 'node:url'

const FOR_DEVELOPERS = ['scripts', 'dependencies', 'devDependencies', 'overrides', 'allowScripts']
/** What programs have that use the plugin: its types refer to it. */
const PEERS = { peerDependencies: { fastify: '^5.0.0' }, peerDependenciesMeta: { fastify: { optional: true } } }
const BACKUP = '.package.json'

chdir(fileURLToPath(new URL('..', import.meta.url)))
const tasks = { publish, restore }
const task = tasks[argv[2]]
if (task) task()
else {
  stderr.write(`Usage: node .ci/manifest.mjs ${Object.keys(tasks).join('|')}\n`)
  exit(2)
}

function publish() {
  // What an earlier run left behind when it was killed is not to be saved as the developers' manifest.
  restore()
  cpSync('package.json', BACKUP, { preserveTimestamps: true })
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const field of FOR_DEVELOPERS) delete manifest[field]
  Object.assign(manifest, PEERS)
  writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
}

function restore() {
  if (!existsSync(BACKUP)) return
  cpSync(BACKUP, 'package.json', { preserveTimestamps: true })
  rmSync(BACKUP)
}
