/** The JSON Schema of the configuration is made of the zod schema, and says the same. */
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import t from 'tap'
import { settingsSchema } from '../../src/config/json-schema.js'

const config = new URL('../../config/', import.meta.url)
const file = JSON.parse(readFileSync(new URL('mcp-bridge.schema.json', config), 'utf8')) as object

t.test('the file is fresh (npm run schema writes it)', async (t) => {
  t.same(file, JSON.parse(settingsSchema()))
})

t.test('the schema accepts what the bridge accepts, and reports mistakes', async (t) => {
  const validate = new Ajv({ allErrors: true, strict: false, validateFormats: false }).compile(file)
  const stdio = {
    command: 'npx',
    args: ['-y', 'x'],
    env: { A: '${A}', N: 1 },
    cache: 60_000,
    timeouts: { call: 1_000 },
  }
  const http = { url: 'https://${HOST}/mcp', headers: { authorization: 'Bearer ${file:/run/token}' }, autoApprove: [] }
  const good = {
    $schema: 'x',
    mcpServers: { stdio, http },
    auth: { tokens: { me: '${TOKEN}' } },
    stateKeys: ['${KEY}'],
    inspect: { token: '${VIEWERS}' },
    redis: { url: '${REDIS}' },
    admin: 'http://0.0.0.0:9090',
  }
  t.ok(validate(good), JSON.stringify(validate.errors))
  const wrong: [object, string][] = [
    [{ ...good, mcpServer: {} }, 'additionalProperties'],
    [{ ...good, mcpServers: { 'a b': stdio } }, 'propertyNames'],
    [{ ...good, mcpServers: { a: { command: 'x', era: 'old' } } }, 'enum'],
    [{ ...good, timeouts: { call: '5s' } }, 'type'],
    [{ listen: 'stdio' }, 'required'],
  ]
  for (const [settings, keyword] of wrong) {
    t.notOk(validate(settings), keyword)
    t.ok(
      validate.errors?.some((error) => error.keyword === keyword),
      keyword,
    )
  }
})

t.test('every option has a description', async (t) => {
  const undescribed: string[] = []
  const look = (schema: object, path: string) => {
    for (const [name, option] of Object.entries((schema as { properties?: Record<string, object> }).properties ?? {})) {
      if ('properties' in option) look(option, `${path}${name}.`)
      else if (!('description' in option)) undescribed.push(path + name)
    }
  }
  look(file, '')
  t.same(undescribed, [])
})

t.test('the examples are valid', async (t) => {
  const validate = new Ajv({ allErrors: true, strict: false, validateFormats: false }).compile(file)
  const examples = new URL('examples/', config)
  const names = readdirSync(examples)
  t.ok(names.length > 0)
  for (const name of names)
    t.ok(
      validate(JSON.parse(readFileSync(new URL(name, examples), 'utf8'))),
      `${name} ${JSON.stringify(validate.errors)}`,
    )
})
