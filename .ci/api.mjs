/**
 * The reports of the package's API in docs/api, made of dist/types (`npm run build`): `node .ci/api.mjs` writes them. With `--check` it
 * fails if they are not those of the sources. That such a change has a changeset is checked by `.ci/changeset`.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { argv, chdir, execPath, exit, stderr } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const FOLDER = 'docs/api'
/** The entries of `exports`, by the names of their reports. */
const REPORTS = { 'mcp-bridge': 'index', 'mcp-bridge-fastify': 'plugin' }

chdir(fileURLToPath(new URL('..', import.meta.url)))
const { values } = parseArgs({
  args: argv.slice(2),
  options: { check: { type: 'boolean', default: false } },
})
execFileSync(execPath, ['.ci/tool.mjs', 'package'], { stdio: 'inherit' })
const { Extractor, ExtractorConfig } = createRequire(resolve('.ci/tools/package/package.json'))(
  '@microsoft/api-extractor',
)

mkdirSync('.tap/api', { recursive: true })
for (const [name, entry] of Object.entries(REPORTS)) {
  const path = join(FOLDER, `${name}.api.md`)
  extract(name, resolve('dist/types/app/embed', `${entry}.d.ts`))
  if (values.check && read(path) !== read(join('.tap/api', `${name}.api.md`)))
    fail(`${path} is not what the sources export. After npm run build, node .ci/api.mjs writes it.`)
}

/** Writes the report of an entry; into a folder beside the sources if it is only compared. */
function extract(name, mainEntryPointFilePath) {
  const tsconfig = {
    compilerOptions: { target: 'es2023', module: 'nodenext', lib: ['es2023', 'dom'], types: [], skipLibCheck: true },
    files: [mainEntryPointFilePath],
  }
  const folder = resolve(values.check ? '.tap/api' : FOLDER)
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: resolve('.'),
      mainEntryPointFilePath,
      compiler: { overrideTsconfig: tsconfig },
      apiReport: {
        enabled: true,
        reportFileName: `${name}.api.md`,
        reportFolder: folder,
        reportTempFolder: resolve('.tap/api-new'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: { extractorMessageReporting: { default: { logLevel: 'none' } } },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: resolve('package.json'),
  })
  const { succeeded } = Extractor.invoke(config, { localBuild: true })
  if (!succeeded) fail(`The API of ${name} could not be read`)
}

function read(path) {
  return readFileSync(path, 'utf8')
}

function fail(text) {
  stderr.write(`${text}\n`)
  exit(1)
}
