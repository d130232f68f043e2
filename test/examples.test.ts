/** The examples of configurations: that the bridge takes them, and what they are examples of. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseCommand } from '../src/command/parse.js'
import { parseSettings, type Settings, unknownKeys } from '../src/config/settings.js'
import { secret } from './support/deployment.js'
import { temporaryFolder } from './support/folder.js'

const folder = fileURLToPath(new URL('../config/examples/', import.meta.url))
const env = { GITHUB_TOKEN: secret('github'), SEARCH_KEY: secret('search') }

/** What each of them is for; a file that is not here is missing here. */
const examples: Record<string, (settings: Settings) => boolean> = {
  'compose.json': ({ redis, stateKeys }) => redis !== undefined && stateKeys.length === 1,
  'gateway.json': ({ auth, redis, admin, timeouts }) =>
    Object.keys(auth?.tokens ?? {}).length > 1 && redis !== undefined && admin !== undefined && timeouts.drainDelay > 0,
  'servers.json': ({ mcpServers }) => Object.keys(mcpServers).length > 1,
  'stdio.json': ({ mcpServers }) => Object.values(mcpServers).every((server) => 'command' in server),
}

t.test('the bridge accepts every example as a configuration', async (t) => {
  t.same(readdirSync(folder).sort(), Object.keys(examples))
  for (const [file, holds] of Object.entries(examples)) {
    const input = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { $schema: string }
    const settings = parseSettings(input, { env, read: secret })
    t.ok(holds(settings), file)
    t.same(unknownKeys(settings), [], `${file} has nothing that is ignored`)
    t.ok(existsSync(join(folder, input.$schema)), `${file} names a schema that is there`)
    t.notMatch(JSON.stringify(input), /Bearer (?!\$\{)/, `${file} has no secret in it`)
  }
})

t.test('an example fails without its requirements', async (t) => {
  const input = JSON.parse(readFileSync(join(folder, 'servers.json'), 'utf8')) as unknown
  t.throws(() => parseSettings(input, { env: {}, read: secret }), { message: /GITHUB_TOKEN[\s\S]*SEARCH_KEY/ })
  const read = (path: string) => {
    throw new Error(`no ${dirname(path)}`)
  }
  t.throws(() => parseSettings(input, { env, read }), { message: /cannot read \S*orders-token: no \/run\/secrets/ })
})

/** What an excerpt with this option needs beside it. */
const STATE_KEYS = { stateKeys: ['${STATE_KEY}'] }
const BESIDE: Readonly<Record<string, object>> = {
  listen: { auth: { tokens: { alice: '${ALICE_TOKEN}' } } },
  redis: STATE_KEYS,
  replicas: { redis: { url: 'redis://redis:6379' }, ...STATE_KEYS },
}
/** Pages whose JSON is for programs. */
const OF_PROGRAMS = ['embedding.md', 'inspect.md']
/** Members of JSON that is no configuration: a manifest, a recording of calls, metadata of a result. */
const OTHERS = ['manifest', 'recording', 'io.github.mcp-bridge/unavailable']

t.test('the bridge accepts every configuration in the README and in the guides', async (t) => {
  const folder = temporaryFolder(t)
  const guides = readdirSync(new URL('../docs/', import.meta.url))
    .filter((name) => name.endsWith('.md') && !OF_PROGRAMS.includes(name))
    .filter((name) => /^```json$/m.test(readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8')))
  t.ok(guides.length > 15, `${guides.length} guides`)
  for (const document of ['README.md', ...guides.map((name) => `docs/${name}`)]) {
    const text = readFileSync(new URL(`../${document}`, import.meta.url), 'utf8')
    const all = [...text.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, json = '']) => JSON.parse(json) as object)
    t.ok(all.length > 0, document)
    const blocks = all.filter((block) => !OTHERS.some((name) => name in block))
    for (const [i, block] of blocks.entries()) {
      const file = join(folder, `${i}.json`)
      const beside = Object.assign({}, ...Object.keys(block).map((option) => BESIDE[option]))
      const servers = { mcpServers: { example: { url: 'https://example.com/mcp' } }, ...beside }
      // A recipe for an identity provider is its entry alone.
      const options = 'issuer' in block ? { publicUrl: 'https://mcp.example.com', auth: { issuers: [block] } } : block
      writeFileSync(file, JSON.stringify('servers' in block ? block : { ...servers, ...options }), { mode: 0o600 })
      const command = parseCommand(['check', '--offline', '--config', file], {})
      t.match(command, { kind: 'check', notes: [] }, `${document}, example ${i + 1}`)
    }
  }
})
