/**
 * The version of package.json, wherever else it stands:
 *   node .ci/version.mjs                    writes it there, after `changeset version` has changed it
 *   node .ci/version.mjs --check [v1.2.3]   fails where another one stands; for a tag, also if it is not that of the version, if
 *                                           changesets wait for a version, its notes fill more than a screen, or a page says
 *                                           that nothing is published
 *   node .ci/version.mjs --notes 1.2.3      prints what the changelog says of a version
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { argv, chdir, exit, stderr, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

const VERSION = /\d+\.\d+\.\d+(?:-[a-z]+(?:\.\d+)?)?/.source
/** Files, and what stands before the version in them. */
const PLACES = [
  ['package-lock.json', '"name": "mcp-bridge",\\s+"version": "'],
  ['Dockerfile', 'image\\.version="'],
  ['README.md', '(?:\\./mcp-bridge-|"title":"legacy, modern","version":")'],
  ['server.json', '(?:"version": "|"identifier": "ghcr.io/mcp-bridge/mcp-bridge:|/releases/download/v)'],
  ['config/helm/mcp-bridge/Chart.yaml', '^(?:version|appVersion): '],
  ['config/helm/mcp-bridge/README.md', '^    version: '],
  ['config/kubernetes/gateway.yaml', 'image: mcp-bridge:'],
  ['config/kubernetes/kustomization.yaml', 'newTag: '],
  ['config/kubernetes/sidecar-http.yaml', 'image: mcp-bridge:'],
  ['config/kubernetes/sidecar-stdio.yaml', '(?:image: |FROM )mcp-bridge:'],
  ['docs/docker.md', '--tag example/mcp-bridge:'],
  ['docs/kubernetes.md', 'newTag: '],
]
/** Where pages say how the bridge is installed, and how they say that it is not published. */
const PAGES = ['README.md', 'SECURITY.md', 'docs', 'config']
/** Lines of the notes of a version: a screen of what people want to know. */
const SCREEN = 60
const UNPUBLISHED = /\bnot on the npm registry yet\b|\bpublished yet\b/

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
  writeNotes()
}

/**
 * What was written for people becomes the notes of the version. All lines of changesets, if there are both, become a page for
 * those who want to know each change.
 */
function writeNotes() {
  const changelog = readFileSync('CHANGELOG.md', 'utf8')
  if (!changelog.includes('\n## Unreleased\n')) return
  const [title, ...sections] = changelog.split(/^(?=## )/m)
  const made = sections.find((text) => text.startsWith(`## ${version}\n`))
  const written = sections.find((text) => text.startsWith('## Unreleased\n'))
  const notes = [written.replace('Unreleased', version).trimEnd()]
  if (made !== undefined) {
    const page = `docs/development/changes/${version}.md`
    mkdirSync(dirname(page), { recursive: true })
    writeFileSync(page, made.replace(/^## .*/, `# All changes of ${version}`))
    notes.push(`[All changes](https://github.com/mcp-bridge/mcp-bridge/blob/v${version}/${page}).`)
  }
  const others = sections.filter((text) => text !== made && text !== written)
  writeFileSync('CHANGELOG.md', `${[`${title}${notes.join('\n\n')}\n\n`, ...others].join('').trimEnd()}\n`)
}

function check(tag) {
  const wrong = PLACES.flatMap(([path, before]) => {
    const found = [...readFileSync(path, 'utf8').matchAll(pattern(before))].map(([, , one]) => one)
    if (found.length === 0) return `${path}: no version stands after ${before}`
    return found.filter((one) => one !== version).map((one) => `${path}: ${one}`)
  })
  if (tag !== undefined) wrong.push(...wrongFor(tag))
  if (wrong.length > 0) fail(`package.json says ${version}, but:\n${wrong.join('\n')}`)
}

/** What keeps a tag from being released. */
function wrongFor(tag) {
  const changesets = filesIn('.changeset').filter((path) => path.endsWith('.md') && !path.endsWith('README.md'))
  const stale = PAGES.flatMap(filesIn).flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        UNPUBLISHED.test(line) ? [`${path}:${index + 1} says that something is not published: ${line.trim()}`] : [],
      ),
  )
  return [
    ...(tag === `v${version}` ? [] : [`the tag is ${tag}`]),
    ...changesets.map((path) => `${path} waits: npm run changeset:version`),
    ...stale,
    ...(notes(version).split('\n').length > SCREEN
      ? [
          `CHANGELOG.md has more than ${SCREEN} lines of ${version}: write "## Unreleased" for people before changeset:version`,
        ]
      : []),
  ]
}

/** The file, or all files of the folder; none if it is not there. */
function filesIn(path) {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true })
    .map((name) => join(path, name))
    .filter((one) => statSync(one).isFile())
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
