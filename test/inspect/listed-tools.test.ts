/** What is kept of the tools that servers list: names, and the first words of descriptions, within bounds. */
import t from 'tap'
import { ListedTools } from '../../src/inspector/listed-tools.js'

const learn = (tools: ListedTools, server: string, page: string, listed: readonly Record<string, unknown>[]) =>
  tools.learn(server, page, true, () => listed)

t.test('keeps the first line of a description, or of the title, without credentials', async (t) => {
  const tools = new ListedTools()
  learn(tools, 'notes', 'first', [
    { name: 'read', description: '\n  Reads a note.\nAnd more about that.' },
    { name: 'titled', title: 'A title', description: '' },
    { name: 'bare', description: null },
    { name: 'long', description: 'x'.repeat(5_000) },
    { name: 'secret', description: 'Asks https://ada:hunter2@example.com with Bearer abcdefghijklmnop' },
    { name: 'constructor' },
  ])
  const { secret = '', long = '', ...others } = tools.descriptionsOf('notes') ?? {}
  t.same(others, { read: 'Reads a note.', titled: 'A title' })
  t.equal(long.length, 200)
  t.notMatch(secret, /hunter2|abcdefghijklmnop/)
  t.equal(tools.of('notes')?.length, 6)
})

t.test('descriptions of all servers have one bound, which a list that is replaced gives back', async (t) => {
  const tools = new ListedTools()
  const list = (from: number) =>
    Array.from({ length: 1_000 }, (_, i) => ({ name: `tool-${from + i}`, description: 'x'.repeat(200) }))
  const described = (server: string) => Object.keys(tools.descriptionsOf(server) ?? {}).length
  for (let i = 0; i < 6; i++) learn(tools, `s${i}`, 'page', list(i))
  t.equal(described('s0'), 1_000)
  t.ok(described('s5') < 1_000, 'the last one has no room for all')
  t.equal(tools.of('s5')?.length, 1_000, 'but their names')
  learn(tools, 's0', 'other', [{ name: 'one', description: 'small' }])
  learn(tools, 's5', 'other', list(9))
  t.equal(described('s5'), 1_000, 'there is room again')
  t.same(tools.descriptionsOf('s0'), { one: 'small' })
})
