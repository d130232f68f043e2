/** 7.2: real programs of both eras that start in different orders: lists, names and owners of their group are the same. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'

interface Listed {
  tools: { name: string }[]
  _meta: object
}

const UNAVAILABLE = 'io.github.mcp-bridge/unavailable'
const NAMES = ['first', 'second', 'third']
/** A list waits so long for a program that has not started: no test waits for the end of it. */
const GROUPS = { prefixed: { wait: 100 }, bare: { prefix: 'never', resources: 'as-is', wait: 100 } }

t.test('programs that start in another order are listed in the same order, and get the same calls', async (t) => {
  const seen: unknown[] = []
  for (const order of [NAMES, ['third', 'second', 'first'], ['second', 'third', 'first']]) {
    const folder = temporaryFolder(t)
    const startFile = (name: string) => join(folder, name)
    const programs = {
      first: legacyStdio(t, { startFile: startFile('first') }),
      second: modernStdio(t, { pages: 1, startFile: startFile('second') }),
      third: legacyStdio(t, { startFile: startFile('third') }),
    }
    const mcpServers = Object.fromEntries(Object.entries(programs).map(([name, { server }]) => [name, server]))
    const { url } = await startBridge(t, {}, { mcpServers, groups: GROUPS })
    const list = async (group: string, method = 'tools/list') =>
      (await call(new URL(`/${group}/mcp`, url).href, method)).message.result as unknown as Listed
    const started = async () => new Set((await list('prefixed')).tools.map(({ name }) => name.split('__')[0]))
    for (const [i, name] of order.entries()) {
      writeFileSync(startFile(name), '')
      await until(async () => (await started()).size === i + 1, `the list of ${name}`)
      t.ok((await started()).has(name))
    }
    await until(async () => !(UNAVAILABLE in (await list('bare'))._meta), 'the lists of all')
    const lists = [await list('prefixed'), await list('prefixed', 'prompts/list'), await list('bare')]
    const { message } = await call(new URL('/bare/mcp', url).href, 'tools/call', { name: 'echo', arguments: { a: 1 } })
    const owners = Object.entries(programs).flatMap(([name, { messages }]) =>
      messages().some(({ method }) => method === 'tools/call') ? name : [],
    )
    t.same(owners, ['first'], 'what all have belongs to the first in the configuration')
    seen.push({ lists, message })
  }
  t.same(seen[1], seen[0])
  t.same(seen[2], seen[0])
  t.notOk(JSON.stringify(seen).includes(UNAVAILABLE))
})
