/**
 * Builds what is published: one file with all that it needs, so that it is installed and started in no time and users run
 * exactly what was tested; before it a first file that tells old versions of Node.js that they are too old; and beside it what
 * went into it: an SBOM (CycloneDX), and the licences.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cyclonedxEsbuildPlugin } from '@cyclonedx/cyclonedx-esbuild'
import { build } from 'esbuild'

const out = 'dist'

const { metafile } = await build({
  entryPoints: [{ in: 'src/main.ts', out: 'bridge' }],
  outdir: out,
  bundle: true,
  // What is loaded only on demand stays in files of its own.
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  metafile: true,
  logLevel: 'warning',
  // Its main file asks for its parts in a way that cannot be bundled.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  // Some packages are CommonJS and ask for modules of Node.
  banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" },
  plugins: [
    // Scanners find files of this name in images and packages, though no package.json of what is bundled is there.
    cyclonedxEsbuildPlugin({
      outputFile: 'sbom.cdx.json',
      specVersion: '1.6',
      mcType: 'application',
      outputReproducible: true,
      validate: true,
      logLevel: 'silent',
    }),
  ],
})

copyFileSync('src/start.js', join(out, 'main.js'))

// What an earlier build has left goes last, so that programs can be started from the folder meanwhile.
const kept = new Set([
  'main.js',
  'sbom.cdx.json',
  'LICENSES.txt',
  ...Object.keys(metafile.outputs).map((path) => basename(path)),
])
for (const name of readdirSync(out)) if (!kept.has(name)) rmSync(join(out, name), { recursive: true })

const packages = new Set(
  Object.keys(metafile.inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
)
const notices = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').trim() : ''
  return `${name} ${version} (${license})\n\n${text}\n`
})
writeFileSync(join(out, 'LICENSES.txt'), `What is part of this program.\n\n${notices.join(`\n${'-'.repeat(80)}\n\n`)}`)
