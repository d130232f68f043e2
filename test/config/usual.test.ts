/** Usual configurations are read without the schema, and mean what it says. */
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import * as defaults from '../../src/config/defaults.js'
import { groupEntry } from '../../src/config/schema/groups.js'
import { fileSchema } from '../../src/config/schema/schema.js'
import { httpServer, stdioServer } from '../../src/config/schema/server.js'
import { oauthOfServer } from '../../src/config/schema/sign-in.js'
import { usualSettings } from '../../src/config/usual.js'

type Defaults = typeof defaults

/** As text, because the order of the options counts, too: it is that of lists of changes, and of hashes. */
const same = (one: unknown, other: unknown) => t.equal(JSON.stringify(one), JSON.stringify(other))

t.test('the build writes defaults and names of options that are those of the schema', async (t) => {
  const { exportsOf, precomputed } = (await import(new URL('../../.ci/exports.mjs', import.meta.url).href)) as {
    exportsOf(path: string): Promise<Defaults>
    precomputed(exported: Defaults): string
  }
  const text = precomputed(await exportsOf(fileURLToPath(new URL('../../src/config/defaults.ts', import.meta.url))))
  t.notMatch(text, 'import', 'without the schema')
  const built = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as Defaults
  t.strictSame(built.defaultSettings(), fileSchema.parse({}))
  t.strictSame({ command: 'x', ...built.defaultsOfProgram() }, stdioServer.parse({ command: 'x' }))
  t.strictSame({ url: 'http://x/', ...built.defaultsOfAddress() }, httpServer.parse({ url: 'http://x/' }))
  t.strictSame(built.defaultsOfGroup(), groupEntry.parse({}))
  t.strictSame(built.defaultsOfSignIn(), oauthOfServer.parse({}))
  t.strictSame(built.OPTIONS, Object.keys(fileSchema.shape))
  t.strictSame(built.PROGRAM_OPTIONS, Object.keys(stdioServer.shape))
  t.strictSame(built.ADDRESS_OPTIONS, Object.keys(httpServer.shape))

  for (const { defaultSettings } of [defaults, built]) {
    defaultSettings().allowedHosts.push('example.com')
    t.strictSame(defaultSettings(), fileSchema.parse({}), 'nobody changes the defaults of others')
  }
})

const program = { command: 'npx', args: ['-y', 'x'], env: { A: '' }, cwd: '/srv' }
const address = { url: 'https://example.com:8443/a.b/mcp', headers: { authorization: 'Bearer x' } }

t.test('takes what command lines and files for desktop programs have', async () => {
  for (const config of [
    { listen: 'stdio', log: { level: 'warn' }, groups: false, mcpServers: { one: { command: 'node' } } },
    { listen: 'http://127.0.0.1:0/mcp', mcpServers: { one: address, two: program } },
    { mcpServers: { one: { url: 'http://localhost:3000/mcp' } } },
    { mcpServers: { one: { url: 'http://127.0.0.1:3000/mcp' }, two: { url: 'https://1a.b-c.example' } } },
  ])
    same(usualSettings(config), fileSchema.parse(config))
})

t.test('leaves to the schema what it does not know', async (t) => {
  for (const config of [
    { mcpServers: { one: { ...program, era: 'legacy' } } },
    { mcpServers: { one: { ...program, autoApprove: [] } } },
    { mcpServers: { one: { ...program, env: { A: 1 } } } },
    { mcpServers: { 'a b': program } },
    { mcpServers: { one: { command: '' } } },
    { mcpServers: { one: { url: 'https://me:secret@example.com/' } } },
    ...[
      '08',
      '08.',
      '1.2.3.4.5',
      '1.2.3.08',
      '0x',
      'a.0xg',
      'a.1',
      'xn--a',
      'b.xn--a',
      '256.256.256.256',
      '-a',
      'a.',
    ].map((host) => ({
      mcpServers: { one: { url: `http://${host}/` } },
    })),
    { mcpServers: { one: program }, metrics: false },
    { mcpServers: { one: program }, log: { level: 'loud' } },
    { mcpServers: { one: program }, toString: 'x' },
    JSON.parse('{ "mcpServers": { "__proto__": { "command": "x" } } }') as Record<string, unknown>,
  ])
    t.equal(usualSettings(config), undefined, JSON.stringify(config))
})

t.test('never says other than the schema', async (t) => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>('', undefined, Number.NaN, new Array(2), new Map(), Object.create(null)),
  )
  const or = (...usual: unknown[]) =>
    fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: odd })
  const addresses = fc.oneof(
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
    fc.stringMatching(/^https?:\/\/(xn--)?[a-z0-9.:-]{1,20}(\/[\w./~-]{0,9})?$/),
  )
  const entry = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record(
        { command: or('x'), args: or([], ['a']), env: or({}, { A: 'b' }), cwd: or('/') },
        { requiredKeys: ['command'] },
      ),
    },
    {
      weight: 12,
      arbitrary: fc.record(
        {
          url: fc.oneof({ weight: 1, arbitrary: addresses }, { weight: 2, arbitrary: or('http://x/') }),
          headers: or({}, { a: 'b' }),
          oauth: or(false),
        },
        { requiredKeys: ['url'] },
      ),
    },
    { weight: 1, arbitrary: odd },
  )
  const log = fc.record({ level: or('warn'), format: or('json'), calls: or('none') }, { requiredKeys: [] })
  const config = fc.record(
    {
      mcpServers: fc.dictionary(fc.stringMatching(/^[\w.-]{1,5}$/), entry, { maxKeys: 3 }),
      listen: or('stdio'),
      log: fc.oneof({ weight: 12, arbitrary: log }, { weight: 1, arbitrary: odd }),
      groups: or(false),
    },
    { requiredKeys: ['mcpServers'] },
  )
  let usual = 0
  fc.assert(
    fc.property(config, (value) => {
      const settings = usualSettings(value)
      if (settings === undefined) return
      usual++
      const parsed = fileSchema.parse(value)
      t.strictSame(settings, parsed)
      same(settings, parsed)
    }),
    { numRuns: 3_000 },
  )
  t.ok(usual > 300, `${usual} configurations were usual`)
})
