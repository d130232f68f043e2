/**
 * The version of package.json, wherever else it stands:
 *   node .ci/version.mjs                    writes it there, after `changeset version` has changed it
 *   node .ci/version.mjs --check [v1.2.3]   fails where another one stands, or if the tag is not that of the version
 *   node .ci/version.mjs --notes 1.2.3      prints what the changelog says of a version
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { argv, chdir, exit, stderr, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

const VERSION = /\d+\.\d+\.\d+(?:-[a-z]+(?:\.\d+)?)?/.source
/** Files, and what stands before the version in them. */
const PLACES = [
  ['package-lock.json', '"name": "mcp-bridge",\\s+"version": "'],
  ['Dockerfile', 'image\\.version="'],
  ['README.md', '(?:\\./mcp-bridge-|"title":"legacy, modern","version":")'],
  ['server.json', '(?:"version": "|"identifier": "ghcr.io/mcp-bridge/mcp-bridge:)'],
  ['config/helm/mcp-bridge/Chart.yaml', '^(?:version|appVersion): '],
  ['config/helm/mcp-bridge/README.md', '^    version: '],
  ['config/kubernetes/gateway.yaml', 'image: mcp-bridge:'],
  ['config/kubernetes/kustomization.yaml', 'newTag: '],
  ['config/kubernetes/sidecar-http.yaml', 'image: mcp-bridge:'],
  ['config/kubernetes/sidecar-stdio.yaml', '(?:image: |FROM )mcp-bridge:'],
  ['docs/operations.md', '(?:--tag example/mcp-bridge:|newTag: )'],
]

chdir(fileURLToPath(new URL('..', import.meta.url)))
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const [task, value] = argv.slice(2)
if (task === undefined) write()
else if (task === '--check') check(value)
else if (task === '--notes') stdout.write(notes(value ?? version))
else fail(`There is no ${task}`)

function write() {
  for (const [path, before] of PLACES) {
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replaceAll(pattern(before), `$1${version}`))
  }
  // What was written before there were changesets belongs to the first release.
  const changelog = readFileSync('CHANGELOG.md', 'utf8')
  if (!changelog.includes(`\n## ${version}\n`))
    writeFileSync('CHANGELOG.md', changelog.replace('\n## Unreleased\n', `\n## ${version}\n`))
}

function check(tag) {
  const wrong = PLACES.flatMap(([path, before]) => {
    const found = [...readFileSync(path, 'utf8').matchAll(pattern(before))].map(([, , one]) => one)
    if (found.length === 0) return `${path}: no version stands after ${before}`
    return found.filter((one) => one !== version).map((one) => `${path}: ${one}`)
  })
  if (tag !== undefined && tag !== `v${version}`) wrong.push(`the tag is ${tag}`)
  if (wrong.length > 0) fail(`package.json says ${version}, but:\n${wrong.join('\n')}`)
}

function notes(wanted) {
  const sections = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m).slice(1)
  const section = sections.find((text) => text.startsWith(`${wanted}\n`))
  return section === undefined
    ? fail(`CHANGELOG.md says nothing of ${wanted}`)
    : `${section.slice(wanted.length).trim()}\n`
}

function pattern(before) {
  return new RegExp(`(${before})(${VERSION})`, 'gm')
}

function fail(message) {
  stderr.write(`${message}\n`)
  exit(1)
}
