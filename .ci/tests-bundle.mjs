/** One bundle of all tests that will run, for tests.mjs. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

/** Bundles files of the folder test (`a/b.test`), the programs that they start from sources (test/support/program.ts), and the worker. */
export async function bundle(out, names, programs) {
  const below = (name) => ({ in: join('test', `${name}.ts`), out: name })
  await build({
    entryPoints: [...names.map(below), ...programs.map(below), { in: '.ci/tests-worker.mjs', out: 'worker' }],
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    sourcemap: true,
    sourcesContent: false,
    keepNames: true,
    logLevel: 'warning',
    // esbuild finds its program beside itself, cyclonedx has optional parts, and tests look at what OpenTelemetry loads.
    external: ['esbuild', '@cyclonedx/*', '@opentelemetry/*'],
    alias: {
      // As in build.mjs.
      'jsonc-parser': 'jsonc-parser/lib/esm/main.js',
      'async-hook-domain': resolve('.ci/tests-domain.mjs'),
    },
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)",
    },
    plugins: [
      { name: 'addresses', setup: keepAddresses },
      { name: 'tap', setup: giveOwnTests },
    ],
  })
}

/** Modules find fixtures beside themselves: in the bundle, too, their address is that of their source. */
function keepAddresses({ onLoad }) {
  onLoad({ namespace: 'file', filter: /[/\\](src|test|\.ci)[/\\][^:]*\.(ts|mjs)$/ }, ({ path }) => ({
    contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
    loader: path.endsWith('.ts') ? 'ts' : 'js',
  }))
}

/** What a file of tests imports from tap by default is its own test, a part of that of its process (tests-worker.mjs). */
function giveOwnTests({ onResolve, onLoad }) {
  onResolve({ filter: /^tap$/ }, ({ importer }) =>
    importer.endsWith('.ts') ? { path: importer, namespace: 'tap-of' } : undefined,
  )
  onLoad({ filter: /.*/, namespace: 'tap-of' }, () => ({
    contents: "export * from 'tap'\nimport { current } from './tests-current.mjs'\nexport default current.test",
    resolveDir: resolve('.ci'),
  }))
}
