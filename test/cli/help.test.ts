/** Help and the pages of options in docs/reference: both are made of the tables of commands and flags, and of the schema of options. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { configurationPages } from '../../.ci/configuration-page.js'
import { COMMAND_NAMES, rowOf } from '../../src/command/commands.js'
import { FLAGS, type FlagName, flagOf } from '../../src/command/flags.js'
import { helpOf, shortHelp } from '../../src/command/help.js'
import { parseCommand } from '../../src/command/parse.js'
import { settingsSchema } from '../../src/config/json-schema.js'
import { options } from '../../src/config/reference.js'

const root = new URL('../../', import.meta.url)
const flagNames = Object.keys(FLAGS) as FlagName[]
/** In one line, because pages are wrapped. */
const flat = (text: string) => text.replace(/\s+/g, ' ')
const shown = (text: string) => text.replace(/[<>|*_`]/g, (one) => `\\${one}`)

t.test('the help of the program fits on a screen', async (t) => {
  const lines = shortHelp().trimEnd().split('\n')
  t.ok(lines.length < 40, `${lines.length} lines`)
  for (const line of lines) t.ok(line.length <= 100, line)
  for (const name of COMMAND_NAMES) t.match(shortHelp(), `  ${name.replace(/^trust .*/, 'trust')} `)
})

t.test('the help of a command lists exactly its flags', async (t) => {
  for (const name of COMMAND_NAMES) {
    const page = helpOf([name])
    for (const flag of flagNames) {
      const has = new RegExp(`^ {2}(?:-\\w,|   ) --${flag}(?: |$)`, 'm').test(page)
      const isOwn = rowOf(name).flags.includes(flag) || flag === 'help' || flag === 'version'
      t.equal(has, isOwn, `${name} --${flag}`)
    }
  }
})

t.test('the help, the reference and the JSON Schema describe an option in the same words', async (t) => {
  const page = Object.values(configurationPages()).join('\n')
  const serve = flat(helpOf(['serve']))
  const schema = settingsSchema()
  for (const { path, about } of options()) {
    t.ok(page.includes(`| \`${path}\` | `), path)
    t.ok(page.includes(`| ${shown(about)} |`), `${path} in the reference`)
    t.ok(schema.includes(JSON.stringify(about)), `${path} in the JSON Schema`)
    const flag = flagNames.find((name) => {
      const { option, about: own } = flagOf(name) ?? {}
      return option === path && own === undefined
    })
    if (flag) t.ok(serve.includes(about), `--${flag} in the help`)
  }
})

/** Flags that set one member of an option that is an object. */
const OF_ONE_MEMBER: readonly FlagName[] = ['token']

t.test(
  'a flag has the description of its option, unless it sets none, a part of it, or the same as another flag',
  async (t) => {
    const paths = new Set(options().map(({ path }) => path))
    const isSecond = (name: FlagName, option: string) =>
      flagNames.slice(0, flagNames.indexOf(name)).some((other) => flagOf(other)?.option === option)
    for (const name of flagNames) {
      const { option, about, to } = flagOf(name) ?? {}
      if (option !== undefined) t.ok(paths.has(option), `${name} sets an option that exists`)
      const isPart = OF_ONE_MEMBER.includes(name) || (to !== undefined && typeof to !== 'object')
      t.equal(about !== undefined, option === undefined || isPart || isSecond(name, option), name)
    }
  },
)

t.test('the pages of options are fresh (npm run schema writes them)', async (t) => {
  const pages = Object.entries(configurationPages())
  t.ok(pages.length > 2)
  for (const [name, text] of pages) t.equal(readFileSync(new URL(`docs/reference/${name}`, root), 'utf8'), text, name)
})

t.test('the README has fewer than 1,500 words', async (t) => {
  const words = readFileSync(new URL('README.md', root), 'utf8')
    .split(/\s+/)
    .filter((word) => word !== '')
  t.ok(words.length < 1_500, `${words.length} words`)
})

t.test('the README has a picture of the inspector, which is small', async (t) => {
  const [, path = ''] = /!\[[^\]]+\]\(([^)]+)\)/.exec(readFileSync(new URL('README.md', root), 'utf8')) ?? []
  const picture = readFileSync(new URL(path, root))
  t.equal(picture.subarray(8, 12).toString(), 'WEBP')
  t.ok(picture.length < 150 * 1024, `${picture.length} bytes`)
})

t.test('every environment variable that the bridge reads is in docs/reference/flags.md', async (t) => {
  const page = configurationPages()['flags.md'] ?? ''
  const source = new URL('src/', root)
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const names = files.flatMap((file) =>
    [...readFileSync(new URL(file, source), 'utf8').matchAll(/(?:env\[|\bsaid\()'([A-Z_]+)'/g)].map(
      ([, name = '']) => name,
    ),
  )
  t.ok(names.length > 5)
  for (const name of new Set(names)) t.ok(page.includes(`\`${name}\``), name)
})

t.test('the examples of the help are valid command lines', async (t) => {
  const env = { API_KEY: 'x', TOKEN: 'x', PATH: process.env['PATH'] }
  const lines = COMMAND_NAMES.flatMap((name) => rowOf(name).examples.map(([, line]) => line))
  for (const line of lines) {
    const [, ...argv] = [...line.matchAll(/'([^']*)'|((?:[^\s"']|"[^"]*")+)((?:'[^']*')?)/g)].map(
      ([, quoted, bare = '', tail = '']) => quoted ?? `${bare.replaceAll('"', '')}${tail.replaceAll("'", '')}`,
    )
    // What stands in a file is another matter.
    if (argv.includes('--config')) continue
    t.doesNotThrow(() => parseCommand(argv, env), line)
  }
})

t.test('help says where all servers are together, and where the docs are', async (t) => {
  const all = [shortHelp(), ...COMMAND_NAMES.map((name) => helpOf([name]))].join('\n')
  t.match(shortHelp(), /at \/mcp\b/)
  t.match(shortHelp(), 'https://github.com/mcp-bridge/mcp-bridge/blob/main/docs/configuration.md')
  // Who has the program alone has no such path.
  t.notMatch(all, /(?<!\/)\bdocs\/\w/)
})
