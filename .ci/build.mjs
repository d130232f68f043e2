/**
 * Builds what is published: one file with the program and its small packages, and one for each group of large packages; a first
 * file that tells old versions of Node.js that they are too old; the files that programs import; and what went into them: an SBOM (CycloneDX), and the licences.
 *
 * Few files, and CommonJS, because Node.js loads them fastest: it needs about a millisecond for each import of one file by another,
 * and modules of CommonJS run when they are first required, not before.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { cyclonedxEsbuildPlugin } from '@cyclonedx/cyclonedx-esbuild'
import { build } from 'esbuild'
import { exportsOf, precomputed } from './exports.mjs'
import { bundlePage } from './page.mjs'

const out = 'dist'
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const { page, metafile: partsOfPage } = await bundlePage()

/**
 * Puts the page of the inspector beside the program, as text in a file that only an inspector reads, and what went into it into what the
 * SBOM is made of.
 */
const embedPage = {
  name: 'page',
  setup({ onResolve, onLoad, onEnd }) {
    onResolve({ filter: /^\.\/page\.cjs$/ }, ({ path }) => ({ path, external: true }))
    onLoad({ filter: /inspector[\\/]page\.ts$/ }, () => ({ contents: `export const { PAGE } = require('./page.cjs')` }))
    onEnd(({ metafile }) => {
      Object.assign(metafile.inputs, partsOfPage.inputs)
      Object.assign(metafile.outputs, partsOfPage.outputs)
    })
  },
}

/** Makes the bridge find other files of its own beside itself: the program of the threads that check values, and all that an extension has. */
const findFiles = {
  name: 'files',
  setup({ onLoad }) {
    const places = {
      'inspector/check/file.ts': ['CHECKER', './checker.cjs'],
      'command/extension/own-folder.ts': ['OWN_FOLDER', './'],
    }
    for (const [path, [name, place]] of Object.entries(places)) {
      const contents = `import { pathToFileURL } from 'node:url'
export const ${name} = new URL('${place}', pathToFileURL(__filename))`
      onLoad({ filter: new RegExp(`${path.replaceAll('/', '[\\\\/]').replace('.ts', '\\.ts$')}`) }, () => ({
        contents,
      }))
    }
  },
}

/** Writes the version into the bridge, so that its files work wherever they lie: package.json need not be near them. */
const knowVersion = {
  name: 'version',
  setup({ onLoad }) {
    const contents = `export const versionOfBridge = () => ${JSON.stringify(version)}`
    onLoad({ filter: /src[\\/]base[\\/]version\.ts$/ }, () => ({ contents }))
  },
}

/** Writes into the bridge what its schema gives without options: making the schema takes a fifth of a start. */
const knowDefaults = {
  name: 'defaults',
  setup({ onLoad }) {
    onLoad({ filter: /src[\\/]config[\\/]defaults\.ts$/ }, async ({ path }) => ({
      contents: precomputed(await exportsOf(path)),
    }))
  },
}

/** Large packages that some configurations never use, by the file of .ci/chunks that contains them. */
const groups = Object.fromEntries(
  readdirSync('.ci/chunks').map((file) => {
    const text = readFileSync(join('.ci/chunks', file), 'utf8')
    return [basename(file, '.cjs'), [...text.matchAll(/require\('([^']+)'\)/g)].map(([, name]) => name)]
  }),
)

/** Makes the sources take these packages from the files of their groups. */
const inGroups = {
  name: 'in-groups',
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(`^(?:${Object.values(groups).flat().join('|')})$`)
    const sources = resolve('src') + sep
    onResolve({ filter }, ({ path, importer }) => {
      // There must be one undici, because @fastify/reply-from, of @fastify/http-proxy, takes connections only of its own.
      const shared = importer.endsWith('.ts')
        ? importer.startsWith(sources)
        : path === 'undici' && isReplyFrom(importer)
      return shared ? { path, namespace: 'grouped' } : undefined
    })
    onLoad({ filter: /./, namespace: 'grouped' }, ({ path }) => {
      const group = Object.keys(groups).find((name) => groups[name].includes(path))
      return { contents: `module.exports = require('./${group}.cjs')['${path}']` }
    })
    onResolve({ filter: /./, namespace: 'grouped' }, ({ path }) => ({ path, external: true }))
  },
}

const isReplyFrom = (file) => file.includes(join('@fastify', 'reply-from'))

/** Packages that ask for modules which they seldom use. */
const LATE_IN = [join('prom-client', 'lib'), join('node_modules', 'fastify', 'lib')]
/** Modules of Node.js that take milliseconds to load, and that a start of a program behind the bridge does not need. */
const LATE = ['crypto', 'http', 'http2', 'https', 'readline', 'readline/promises', 'tls', 'zlib']

/**
 * Takes modules of Node.js without `require`, which a program that bundles the bridge into an ES module does not have. Those in LATE are
 * loaded when one of their exports is first used.
 */
const ofNode = {
  name: 'of-node',
  setup({ onResolve, onLoad }) {
    const filter = new RegExp(`^(?:node:.+|${builtinModules.join('|')})$`)
    onResolve({ filter }, ({ path, importer }) => {
      const name = path.replace(/^node:/, '')
      const isLate =
        LATE.includes(name) &&
        (importer.startsWith(resolve('src') + sep) || LATE_IN.some((folder) => importer.includes(folder)))
      return { path: name, namespace: isLate ? 'late' : 'of-node' }
    })
    const taken = (name) => `process.getBuiltinModule('node:${name}')`
    onLoad({ filter: /./, namespace: 'of-node' }, ({ path }) => ({ contents: `module.exports = ${taken(path)}` }))
    onLoad({ filter: /./, namespace: 'late' }, async ({ path }) => {
      const { default: _, ...exported } = await import(`node:${path}`)
      const names = JSON.stringify(Object.keys(exported))
      const getter = `{ enumerable: true, get: () => (loaded ??= ${taken(path)})[name] }`
      return { contents: `let loaded\nfor (const name of ${names}) Object.defineProperty(exports, name, ${getter})` }
    })
  },
}

/** Files that make schemas, which a usual start does not need: loaded when one of their exports is first used by another file. */
const SCHEMAS = /^(?:config[\\/](?:json-schema|schema[\\/].+)|services[\\/]oauth[\\/]store[\\/]record)\.ts$/
const lateSchemas = {
  name: 'late-schemas',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.{1,2}\// }, ({ path, importer, resolveDir, namespace }) => {
      const file = relative('src', join(resolveDir, path.replace(/\.js$/, '.ts')))
      const isLate = SCHEMAS.test(file) && !SCHEMAS.test(relative('src', importer))
      return isLate && namespace === 'file' ? { path: file, namespace: 'late-schemas' } : undefined
    })
    onLoad({ filter: /./, namespace: 'late-schemas' }, async ({ path }) => {
      const { metafile } = await build({
        entryPoints: [join('src', path)],
        format: 'esm',
        write: false,
        metafile: true,
      })
      const names = JSON.stringify(Object.values(metafile.outputs)[0].exports)
      const getter = `{ enumerable: true, get: () => require(${JSON.stringify(`./${basename(path)}`)})[name] }`
      return {
        contents: `for (const name of ${names}) Object.defineProperty(exports, name, ${getter})`,
        resolveDir: resolve('src', dirname(path)),
      }
    })
  },
}

/**
 * Packages that are not used, because no route has a schema, a socket of WebSocket, or is called without a connection, metrics are never
 * pushed, and checks speak English.
 */
const unused = {
  name: 'unused',
  setup({ onResolve, onLoad }) {
    const filter =
      /^(?:@fastify\/ajv-compiler|@fastify\/fast-json-stringify-compiler|light-my-request|ws|\.\/lib\/pushgateway|\.\.\/locales\/index\.cjs)$/
    onResolve({ filter }, ({ path }) => ({ path, namespace: 'unused' }))
    onLoad({ filter: /./, namespace: 'unused' }, () => ({ contents: '' }))
  },
}

/** What these plugins put in places of packages is no component of the program. */
const components = {
  name: 'components',
  setup({ onEnd }) {
    onEnd(({ metafile: { outputs } }) => {
      for (const { inputs } of Object.values(outputs))
        for (const name of Object.keys(inputs))
          if (/^(?:unused|grouped|of-node|late|late-schemas):/.test(name)) delete inputs[name]
    })
  },
}

/**
 * What the bridge and @fastify/reply-from use of undici. Its main file also loads fetch, WebSocket, caches and mocks, which takes a tenth of
 * a start.
 */
const UNDICI = `const Dispatcher = require('./lib/dispatcher/dispatcher')
Object.assign(Dispatcher.prototype, require('./lib/api'))
module.exports = {
  Dispatcher,
  Client: require('./lib/dispatcher/client'),
  Pool: require('./lib/dispatcher/pool'),
  BalancedPool: require('./lib/dispatcher/balanced-pool'),
  Agent: require('./lib/dispatcher/agent'),
  buildConnector: require('./lib/core/connect'),
  errors: require('./lib/core/errors'),
  get ProxyAgent() { return require('./lib/dispatcher/proxy-agent') },
  get interceptors() { return { decompress: require('./lib/interceptor/decompress') } },
  get getGlobalDispatcher() { return require('./lib/global').getGlobalDispatcher },
}`
const lean = {
  name: 'lean',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/]undici[\\/]index\.js$/ }, ({ path }) => ({
      contents: UNDICI,
      resolveDir: dirname(path),
    }))
    // Nobody who runs a program with the bridge in it can act on a warning that a part of undici is experimental.
    onLoad(
      { filter: /[\\/]undici[\\/]lib[\\/](?:interceptor[\\/]decompress|dispatcher[\\/]socks5-proxy-agent)\.js$/ },
      ({ path }) => {
        const text = readFileSync(path, 'utf8')
        const contents = text.replace(/^let (\w*[wW]arningEmitted) = .*$/m, 'let $1 = true')
        if (contents === text) throw new Error(`${path} warns in another way than before`)
        return { contents, loader: 'js' }
      },
    )
  },
}

const { metafile } = await build({
  entryPoints: [
    { in: 'src/entry.ts', out: 'bridge' },
    { in: 'src/inspector/check/worker.ts', out: 'checker' },
    ...Object.keys(groups).map((group) => ({ in: `.ci/chunks/${group}.cjs`, out: group })),
  ],
  outdir: out,
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  metafile: true,
  logLevel: 'warning',
  // Its main file asks for its parts in a way that cannot be bundled.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  plugins: [
    lateSchemas,
    inGroups,
    lean,
    unused,
    ofNode,
    components,
    embedPage,
    findFiles,
    knowVersion,
    knowDefaults,
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

writeFileSync(join(out, 'page.cjs'), `module.exports = { PAGE: ${JSON.stringify(page)} }\n`)
// A single character beyond ASCII makes V8 keep a whole file with two bytes per character, which takes longer to load. esbuild
// escapes such characters in strings and names, but not in regular expressions and comments.
for (const file of [...Object.keys(metafile.outputs), join(out, 'page.cjs')].filter((path) => path.endsWith('.cjs')))
  writeFileSync(file, readFileSync(file, 'utf8').replace(/[^\0-\x7f]/g, escaped))
// V8 compares only the length of a file with that of what it has compiled.
const hash = createHash('sha256')
for (const file of readdirSync(out).filter((name) => name.endsWith('.cjs'))) hash.update(readFileSync(join(out, file)))
const start = readFileSync('src/start.js', 'utf8').replace("'BUILD'", `'${hash.digest('hex').slice(0, 16)}'`)
writeFileSync(join(out, 'main.js'), start)
const { manPage } = await exportsOf('.ci/man-page.ts')
writeFileSync(join(out, 'mcp-bridge.1'), manPage(version))

/**
 * What programs import, by the file of each entry of `exports`. Node.js looks for exports in the text of a module of CommonJS, and bundlers
 * follow what it requires: so each entry is a small one, which reads the bridge when it is used.
 */
const ENTRIES = {
  'index.cjs': "exports.createBridge = async (options) => require('./bridge.cjs').createBridge(options)",
  'index.js': "export { createBridge } from './index.cjs'",
  'fastify.cjs': `module.exports = async function mcpBridge(app, options) {
  await require('./bridge.cjs').mcpBridge(app, options)
}
module.exports.default = module.exports`,
  'fastify.js': "export { default } from './fastify.cjs'",
}
for (const [name, text] of Object.entries(ENTRIES)) writeFileSync(join(out, name), `${text}\n`)

// What an earlier build has left goes last, so that programs can be started from the folder meanwhile.
const kept = new Set([
  'main.js',
  'page.cjs',
  'mcp-bridge.1',
  ...Object.keys(ENTRIES),
  // Of types.mjs.
  'types',
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

/** A character as strings and regular expressions write it. */
function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
