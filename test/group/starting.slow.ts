/** A group of ten programs that npx starts: real servers, and one that is silent until the test releases it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startBridgeProcess } from '../support/bridge-process.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ALL_LISTS, changed, listen, told } from '../support/listening.js'
import { call } from '../support/modern.js'

/** The default time that a list waits, in milliseconds. */
const WAIT = 20_000
const UNAVAILABLE = 'io.github.mcp-bridge/unavailable'

interface Listed {
  tools: { name: string }[]
  _meta?: { [UNAVAILABLE]?: { server: string; reason: string }[] }
}

t.test('ten programs, one of which never answers: the others are listed and work', async (t) => {
  const folder = temporaryFolder(t)
  const kinds: [string, string[], string, object][] = [
    ['everything', ['mcp-server-everything', 'stdio'], 'echo', { message: 'hé' }],
    ['files', ['mcp-server-filesystem', folder], 'list_allowed_directories', {}],
    ['memory', ['mcp-server-memory'], 'read_graph', {}],
  ]
  const programs = [1, 2, 3].flatMap((n) =>
    kinds.map(([name, words, tool, args]) => ({ name: `${name}-${n}`, words, tool: `${name}-${n}__${tool}`, args })),
  )
  const startFile = join(folder, 'start')
  const silent = legacyStdio(t, { startFile }).server
  const entries = programs.map(({ name, words }) => [name, { command: 'npx', args: ['--no-install', ...words] }])
  const { urls } = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: Object.fromEntries([...entries.slice(0, 5), ['silent', silent], ...entries.slice(5)]),
    timeouts: { start: 600_000 },
  })
  const url = new URL('/mcp', urls['silent']).href
  const list = async () => (await call(url, 'tools/list')).message.result as unknown as Listed
  const serversIn = ({ tools }: Listed) => [...new Set(tools.map(({ name }) => name.split('__')[0]))]

  const started = performance.now()
  const first = await list()
  const took = Math.round(performance.now() - started)
  t.comment(`the first list came after ${took} ms, with ${serversIn(first).length} servers; the limit is ${WAIT} ms`)
  t.match(
    first._meta?.[UNAVAILABLE]?.find(({ server }) => server === 'silent'),
    { reason: /./ },
  )
  const stream = await listen(url, ALL_LISTS)
  const names = programs.map(({ name }) => name)
  await until(async () => serversIn(await list()).length === names.length, 'the lists of all that answer')
  t.same(serversIn(await list()), names, 'in the order of the configuration')
  for (const { tool, args } of programs) {
    const { message } = await call(url, 'tools/call', { name: tool, arguments: args })
    t.match(message.result, { content: [{ type: 'text' }] }, tool)
  }
  t.match((await list())._meta?.[UNAVAILABLE], [{ server: 'silent' }], 'it has not answered meanwhile')

  const before = told(stream).length
  writeFileSync(startFile, '')
  const isTold = () =>
    told(stream)
      .slice(before)
      .some(({ method }) => method === changed('tools').method)
  await until(isTold, 'word of what has changed')
  t.ok(serversIn(await list()).includes('silent'), 'it is listed when it has answered, and clients are told')
  stream.leave()
})
