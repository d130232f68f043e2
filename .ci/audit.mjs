/**
 * Looks up known vulnerabilities of what ships: `node .ci/audit.mjs [--strict]`, after a build. `npm audit` asks the registry
 * about all packages of `dependencies`; what is not in the bundle is left out here, by the SBOM of the build.
 *
 * Exits with 1 if something that ships is vulnerable. Where the registry cannot be asked, that is said and not a failure,
 * but for `--strict`, which is for releases.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { argv, chdir, exit, platform, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

const TIMEOUT = 60_000

chdir(fileURLToPath(new URL('..', import.meta.url)))
const strict = argv.includes('--strict')
const shipped = new Set(
  read('dist/sbom.cdx.json').components.map(({ group, name, version }) => key(group, name, version)),
)
const { packages } = read('package-lock.json')
const { report, problem } = audit()

if (problem !== undefined) {
  stdout.write(`The registry could not be asked about ${shipped.size} packages that ship: ${problem}\n`)
  exit(strict ? 1 : 0)
}
const found = Object.values(report.vulnerabilities).flatMap(advisories)
for (const line of found) stdout.write(`${line}\n`)
stdout.write(`${shipped.size} packages ship, with ${found.length} known vulnerabilities\n`)
exit(found.length === 0 ? 0 : 1)

/** What npm knows of the packages that are not only for developers; or why it knows nothing. */
function audit() {
  const shell = platform === 'win32'
  const args = ['audit', '--omit=dev', '--json', '--fetch-retries=1']
  const { stdout: text, error } = spawnSync('npm', args, {
    encoding: 'utf8',
    shell,
    timeout: TIMEOUT,
    maxBuffer: 2 ** 26,
  })
  if (error) return { problem: error.message }
  try {
    const report = JSON.parse(text)
    if (report.vulnerabilities) return { report }
    return { problem: report.message ?? report.error?.summary ?? 'npm audit answered no report' }
  } catch {
    return { problem: 'npm audit answered no JSON' }
  }
}

/** A line for each advisory about a package, for each of its copies that ships. `via` names packages, too, which have lines of their own. */
function advisories({ name, nodes, via }) {
  const versions = new Set(nodes.map((path) => packages[path]?.version))
  const affected = [...versions].filter((version) => shipped.has(`${name}@${version}`))
  return affected.flatMap((version) =>
    via
      .filter((one) => typeof one === 'object')
      .map(({ severity, title, url }) => `${severity}: ${name}@${version}: ${title} (${url})`),
  )
}

function key(group, name, version) {
  return `${group ? `${group}/` : ''}${name}@${version}`
}

function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}
