/** Programs that a bundler makes of an application and the bridge, alone in a folder, as a function on a server is deployed. */
import { execFile } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type BuildOptions, build } from 'esbuild'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor } from '../support/modern.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))

/** While coverage is measured, what programs import is not built anew. */
const skip = env['NODE_V8_COVERAGE'] ? 'coverage is measured' : false

/** What answers a request, for functions that get the options of a bridge, and its headers and body. */
const FETCH = `async ({ options, headers, body }) => {
  const bridge = await createBridge(options)
  const response = await bridge.fetch(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
  const text = await response.text()
  await bridge.close()
  return text
}`
const LISTEN = `async ({ options, headers, body }) => {
  const app = fastify({ forceCloseConnections: true })
  app.register(mcpBridge, { ...options, prefix: '/mcp' })
  const origin = await app.listen({ port: 0 })
  const response = await fetch(origin + '/mcp', { method: 'POST', headers, body })
  const text = await response.text()
  await app.close()
  return text
}`
const IMPORTING = `import { createBridge } from 'mcp-bridge'\nexport const handler = ${FETCH}`
const REQUIRING = `const { createBridge } = require('mcp-bridge')\nexports.handler = ${FETCH}`
const PLUGIN = `import { fastify } from 'fastify'
import mcpBridge from 'mcp-bridge/fastify'
export const handler = ${LISTEN}`

/** Fastify itself needs it in an ES module, as all packages of CommonJS that use modules of Node.js. */
const REQUIRE = {
  js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.filename)",
}

const CASES: readonly [what: string, application: string, options: BuildOptions][] = [
  ['an ES module', IMPORTING, { format: 'esm' }],
  ['an ES module in few bytes', IMPORTING, { format: 'esm', minify: true }],
  ['CommonJS', IMPORTING, { format: 'cjs' }],
  ['an ES module, of an application of CommonJS', REQUIRING, { format: 'esm' }],
  ['CommonJS, of an application of CommonJS', REQUIRING, { format: 'cjs', minify: true }],
  ['an ES module with Fastify', PLUGIN, { format: 'esm', banner: REQUIRE }],
  ['CommonJS with Fastify', PLUGIN, { format: 'cjs' }],
]

/** Bundles an application that lies in the package, or in another folder. */
function bundled(application: string, outfile: string, options: BuildOptions, resolveDir = root) {
  const stdin = { contents: application, resolveDir, loader: 'js' } as const
  const nodePaths = [join(root, 'node_modules')]
  return build({
    ...options,
    stdin,
    outfile,
    nodePaths,
    bundle: true,
    platform: 'node',
    metafile: true,
    logLevel: 'warning',
  })
}

/** Has a tool of each of two servers called by the function of a file: of a program, and of one with an address. */
async function answers(t: Test, folder: string, file: string): Promise<void> {
  const mcpServers = { program: legacyStdio(t).server, http: { url: (await LegacyHttp.start(t)).url } }
  const events = Object.keys(mcpServers).map((server) => {
    const params = { name: `${server}__echo`, arguments: { a: 1 } }
    const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } }
    return { options: { mcpServers }, headers: headersFor('tools/call', params), body: JSON.stringify(request) }
  })
  const script = `const { handler, default: all } = await import('./${file}')
    for (const event of ${JSON.stringify(events)}) console.log(await (handler ?? all.handler)(event))`
  const { stdout, stderr } = await run(execPath, ['--input-type=module', '--eval', script], { cwd: folder })
  const said = stdout.trim().split('\n')
  t.equal(said.length, events.length)
  for (const line of said)
    t.match(JSON.parse(line), { id: 1, result: { resultType: 'complete', content: [{ type: 'text' }] } })
  t.equal(stderr, '', 'nothing is written beside the answers')
}

for (const [what, application, options] of CASES)
  t.test(`bundled into ${what}, the bridge answers from a single file`, { skip }, async (t) => {
    const folder = temporaryFolder(t)
    const file = `application.${options.format === 'esm' ? 'mjs' : 'cjs'}`
    await bundled(application, join(folder, file), options)
    await answers(t, folder, file)
  })

for (const [what, application, format] of [
  ['an ES module', IMPORTING, 'esm'],
  ['CommonJS', REQUIRING, 'cjs'],
  ['an ES module with Fastify', PLUGIN, 'esm'],
] as const)
  t.test(
    `left out of a bundle, the package answers to ${what} with the files that it names alone`,
    { skip },
    async (t) => {
      const folder = temporaryFolder(t)
      // As that of an application. Without it, a package.json above this folder would count.
      writeFileSync(join(folder, 'package.json'), '{}')
      const { metafile } = await bundled(application, join(folder, 'traced.cjs'), { format: 'cjs' })
      const files = Object.keys(metafile.inputs).filter((path) => path.startsWith('dist/'))
      for (const path of ['package.json', ...files])
        cpSync(join(root, path), join(folder, 'node_modules/mcp-bridge', path))
      const file = `application.${format === 'esm' ? 'mjs' : 'cjs'}`
      const options: BuildOptions = { format, external: ['mcp-bridge'], ...(format === 'esm' && { banner: REQUIRE }) }
      await bundled(application, join(folder, file), options, folder)
      await answers(t, folder, file)
    },
  )

t.test('a program of CommonJS requires no ES module, of which some versions of Node.js warn', { skip }, async (t) => {
  const script = `const { createBridge } = require('mcp-bridge'); const plugin = require('mcp-bridge/fastify')
    console.log(typeof createBridge, typeof plugin, plugin === plugin.default)`
  const { stdout, stderr } = await run(execPath, ['--no-experimental-require-module', '--eval', script], { cwd: root })
  t.equal(stdout, 'function function true\n')
  t.equal(stderr, '')
})
