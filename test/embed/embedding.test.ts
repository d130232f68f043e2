/** The programs of docs/embedding.md, as people would run them. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath, pid } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Program, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const document = readFileSync(join(root, 'docs/embedding.md'), 'utf8')
const programs = new Map(
  [...document.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)].map(([, name = '', text = '']) => [name, text]),
)

/** While coverage is measured, what programs import is not built anew. */
const skip = env['NODE_V8_COVERAGE'] ? 'coverage is measured' : false

/** Starts a program of the document. It is within the package, so that it can import it by its name. */
function start(t: Test, name: string, more: Record<string, string> = {}) {
  const folder = join(root, '.tap', `embedding-${pid}-${name}`)
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, name.replace(/\.js$/, '.mjs'))
  writeFileSync(file, programs.get(name) ?? '')
  return startProgram(t, [], { PORT: '0', ...more }, [execPath, file])
}

/** Waits for what a program prints. */
async function prints({ stdout, stderr }: Program, pattern: RegExp): Promise<string> {
  await until(() => pattern.test(stdout()), `${pattern} (${stdout()}${stderr()})`)
  return pattern.exec(stdout())?.[1] ?? ''
}

t.test('the document has five programs', async (t) => {
  t.same([...programs.keys()], ['application.js', 'hono.js', 'express.js', 'node-http.js', 'memory.js'])
})

t.test('a Fastify application serves the bridge beside its own routes', { skip }, async (t) => {
  const program = start(t, 'application.js')
  const origin = await prints(program, /Server listening at (http:\/\/127[^"]+)/)
  const headers = { authorization: 'Bearer a-token-of-ada' }
  t.same(await (await fetch(origin, { headers })).json(), { hello: 'ada' })
  t.equal((await fetch(`${origin}/mcp`)).status, 401)
  const echo = { name: 'echo', arguments: { message: 'hi' } }
  const { message } = await call(`${origin}/mcp`, 'tools/call', echo, { headers })
  t.match(message, { result: { resultType: 'complete', content: [{ text: /hi/ }] } })
})

for (const [what, name] of [
  ['a Hono application', 'hono.js'],
  ['an Express application', 'express.js'],
  ['a server of node:http', 'node-http.js'],
] as const)
  t.test(`${what} serves it by fetch`, { skip }, async (t) => {
    const server = await LegacyHttp.start(t)
    const program = start(t, name, { MCP_SERVER: server.url })
    const origin = await prints(program, /(http:\/\/localhost:\d+)\//)
    t.equal(await (await fetch(origin)).text(), 'Hello')
    const { message } = await call(`${origin}/mcp`, 'tools/call', { name: 'echo', arguments: { a: 1 } })
    t.match(message, { result: { resultType: 'complete' } })
    const legacy = await LegacyClient.open(`${origin}/mcp`)
    const stream = await legacy.listen()
    t.match((await legacy.call('echo', { a: 2 })).message, { result: {} })
    t.match(stream.headers['content-type'], /event-stream/, 'streams pass, too')
  })

t.test('a client of SDK v2 uses a server of SDK v1 in memory, and the program exits', { skip }, async (t) => {
  const program = start(t, 'memory.js')
  t.equal(await program.ended, 0, program.stderr())
  t.equal(program.stdout(), 'modern: Hello\n')
})
