/** Mistakes about the form of an option: the message shows one that can be written. */
import t from 'tap'
import { example } from '../../src/config/hints.js'
import { options } from '../../src/config/reference.js'
import { examine } from '../../src/config/settings.js'

const SOURCES = {
  env: { TOKEN: 'x'.repeat(32), PROXY_SECRET: 'x'.repeat(32), STATE_KEY: 'x'.repeat(32) },
  read: () => '',
}
const WRONG = [true, 'x', 5, ['x'], { x: 'y' }]

/** A configuration with a value at a path. */
function configWith(path: readonly string[], value: unknown, kind: string | undefined): Record<string, unknown> {
  const entry = kind === 'http' ? { url: 'https://x.example/mcp' } : { command: 'node' }
  const config: Record<string, unknown> = { mcpServers: { a: entry, b: entry } }
  let at = config
  for (const key of path.slice(0, -1)) {
    at[key] ??= {}
    at = at[key] as Record<string, unknown>
  }
  at[path.at(-1) as string] = value
  return config
}

const said = (config: object) => examine(config, SOURCES).issues.map(({ path, message }) => `${path} ${message}`)

t.test('an object or list of the wrong form is answered with the form to write', async (t) => {
  let seen = 0
  for (const { path, type, kind } of options()) {
    // The message about "mcpServers" has a form of its own.
    if (!/list|object/.test(type) || path === 'mcpServers') continue
    const keys = path.replace('mcpServers.<name>', 'mcpServers.a').replaceAll('<name>', 'x').split('.')
    const at = keys.join('.')
    for (const wrong of WRONG) {
      const found = examine(configWith(keys, wrong, kind), SOURCES).issues.find((one) => one.path === at)
      if (!found || !/has to be (?:an? |true|false|PEM)|cannot be/.test(found.message)) continue
      t.match(found.message, /: (?:as in [{[]|write )/, `${at}: ${JSON.stringify(wrong)}`)
      seen++
    }
    const form = example(keys, undefined)?.replace(/^as in /, '')
    t.ok(form, at)
    const value: unknown = JSON.parse((form ?? 'null').replaceAll('…', 'x'))
    const wrong = said(configWith(keys, value, kind)).filter((one) => one.startsWith(`${at} has to be`))
    t.same(wrong, [], `the form of ${at} is valid`)
  }
  t.ok(seen > 100, `${seen} mistakes`)
})

t.test('a group that is a list, and an audit log that is only switched on, are told what to write', async (t) => {
  const mcpServers = { a: { command: 'node' }, b: { command: 'node' } }
  t.match(
    said({ mcpServers, groups: { team: ['a'] } }).join(),
    /groups\.team has to be an object.*\{ "servers": \["a", "b"\] \}/,
  )
  t.match(said({ mcpServers, groups: ['a'] }).join(), /groups has to be .*\{ "team": \{ "servers": \["a", "b"\] \} \}/)
  t.match(said({ mcpServers, audit: true }).join(), /audit has to be an object.*\{ "file": "audit\.jsonl" \}/)
  t.match(said({ mcpServers, groups: { team: { servers: ['aa'] } } }).join(), /names "aa".*: it has a, b$/)
})

t.test('an address with too few or too many slashes is refused with the one that was meant', async (t) => {
  for (const [url, meant] of [
    ['http:/x', 'http://x'],
    ['http:x', 'http://x'],
    ['http:///x/mcp', 'http://x/mcp'],
    ['https:/x.example/mcp', 'https://x.example/mcp'],
    ['http:\\\\x', 'http://x'],
    ['http:/localhost:3000/mcp', 'http://localhost:3000/mcp'],
  ] as const) {
    t.match(said({ mcpServers: { a: { url } } }).join(), new RegExp(`did you mean ${meant}\\?`), url)
    t.match(said({ publicUrl: url }).join(), new RegExp(`publicUrl .*did you mean ${meant}\\?`), url)
  }
  t.match(said({ publicUrl: 'ftp://x.example' }).join(), /publicUrl has to be an http:\/\/ or https:\/\/ address/)
  for (const url of ['HTTP://x.example/mcp', 'http://[::1]:3000/mcp', 'https://x'])
    t.same(said({ mcpServers: { a: { url } } }), [], url)
})
