/** The bridge as a server on a pipe. Numbers are those of test/invariants.md. */
import t from 'tap'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CAPABILITIES, envelope, VERSION } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { openPipe } from '../support/pipe.js'

type Json = Record<string, unknown>

t.test('writes only messages, whatever the server prints, and however it dies', async (t) => {
  const stdio = legacyStdio(t, { banner: 'Hello {"jsonrpc":', stderr: 'noise' })
  const pipe = openPipe(t, stdio.server)
  t.match(await pipe.call('tools/list', {}, { id: 'a' }), { id: 'a', result: { resultType: 'complete' } })
  t.match(await pipe.call('tools/call', { name: 'crash', arguments: {} }, { id: 2 }), {
    id: 2,
    error: { code: -32603 },
  })
  t.match(await pipe.call('tools/call', { name: 'echo', arguments: {} }, { id: 3 }), { id: 3, result: {} })
  t.doesNotThrow(() => pipe.messages())
})

t.test('answers requests as they are ready, each under its id', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  const wait = (id: string | number, ms: number) =>
    pipe.call('tools/call', { name: 'wait', arguments: { ms, say: String(id) } }, { id })
  const answers = await Promise.all([wait(1, 200), wait('1', 100), wait(0, 50), wait('', 10)])
  t.same(
    answers.map(({ result }) => (result as { content: { text: string }[] }).content[0]?.text),
    ['1', '1', '0', ''],
  )
  t.same(
    pipe.messages().map(({ id }) => id),
    ['', 0, '1', 1],
  )
})

const lines: [name: string, line: string | Uint8Array, code: number | undefined][] = [
  ['no JSON: nobody could be answered', '{"jsonrpc":"2.0","id":1,', undefined],
  ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), undefined],
  ['no message, but an id', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
  ['no message and no id', '{"jsonrpc":"2.0"}', undefined],
  ['an array', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
  [
    'another version',
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"${VERSION}":"2025-11-25","${CAPABILITIES}":{}}}}`,
    -32022,
  ],
  [
    'no capabilities',
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"${VERSION}":"2026-07-28"}}}`,
    -32602,
  ],
  ['a bare subscriptions/listen', '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}', -32602],
  ['a bare request', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32600],
  [
    'nested too deep',
    `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":${'['.repeat(70)}${']'.repeat(70)}}}`,
    undefined,
  ],
  [
    'an unknown method',
    `{"jsonrpc":"2.0","id":1,"method":"nope/x","params":{"_meta":${JSON.stringify(envelope())}}}`,
    -32601,
  ],
]

t.test('answers an invalid line if possible, and reads the next one', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  for (const [name, line, code] of lines) {
    const before = pipe.messages().length
    pipe.line(line)
    await pipe.call('tools/list', {}, { id: 'after' })
    const answers = pipe.messages().slice(before, -1)
    t.same(
      answers.map(({ id, error }) => [id, (error as { code: number }).code]),
      code === undefined ? [] : [[String(line).startsWith('[') ? undefined : 1, code]],
      name,
    )
  }
})

t.test('answers a bare server/discover on stdio as over HTTP, unless compat.bareDiscover is off', async (t) => {
  const bare = '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'
  const pipe = openPipe(t, legacyStdio(t).server)
  pipe.line(bare)
  await until(() => pipe.messages().length > 0)
  t.match(pipe.messages()[0], { id: 1, result: { supportedVersions: ['2026-07-28'] } })
  const strict = openPipe(t, legacyStdio(t).server, { compat: { bareDiscover: false } })
  strict.line(bare)
  await until(() => strict.messages().length > 0)
  t.match(strict.messages()[0], { id: 1, error: { code: -32602 } })
})

t.test('reads line ends of Windows, empty lines and lines in pieces', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  const request = JSON.stringify({ jsonrpc: '2.0', id: 'é\u2028', method: 'tools/list', params: { _meta: envelope() } })
  pipe.line(`\r\n\n${request}\r`)
  await until(() => pipe.messages().some(({ id }) => id === 'é\u2028'))
})

t.test('skips a line over the limit', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server, { limits: { lineBytes: 1_000 } })
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(5_000) }))
  t.match(await pipe.call('tools/list', {}, { id: 2 }), { id: 2, result: {} })
  t.equal(pipe.messages().length, 1)
})

t.test('a cancellation reaches the server, and the call gets no answer', async (t) => {
  const stdio = legacyStdio(t)
  const pipe = openPipe(t, stdio.server)
  const cancelled = () => stdio.messages().filter(({ method }) => method === 'notifications/cancelled')
  pipe.line(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 5,
      method: 'tools/call',
      params: { name: 'linger', arguments: {}, _meta: envelope() },
    }),
  )
  await until(() => stdio.messages().some(({ method }) => method === 'tools/call'), 'the call at the server')
  pipe.line(
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5, _meta: envelope() } }),
  )
  pipe.line(
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: '5', _meta: envelope() },
    }),
  )
  await until(() => cancelled().length > 0)
  // The server has answered the call before this one.
  await pipe.call('tools/call', { name: 'echo', arguments: {} }, { id: 6 })
  t.same(
    pipe.messages().filter(({ id }) => id === 5),
    [],
  )
  t.equal(cancelled().length, 1)
  t.ok(Number((cancelled()[0]?.['params'] as Json)['requestId']) >= 1)
})

t.test('refuses an id that is already open, and the open request continues', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  const first = pipe.call('tools/call', { name: 'wait', arguments: { ms: 300 } }, { id: 1 })
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } }))
  t.match(await first, { id: 1, error: { code: -32600 } })
  await until(() => pipe.messages().length === 2)
  t.match(pipe.messages()[1], { id: 1, result: {} })
})

t.test('a tool name that is not a text is an error of the client, not of the bridge', async (t) => {
  for (const server of [legacyStdio(t).server, { url: (await ModernHttp.start(t)).url }]) {
    const pipe = openPipe(t, server)
    for (const name of [{ toString: 1, valueOf: 1 }, [[]], 7, null, true]) {
      const answer = await pipe.call('tools/call', { name, arguments: {} }, { id: JSON.stringify(name) })
      t.ok(answer['error'], JSON.stringify(answer))
    }
    t.same(
      pipe.log.filter(({ level }) => Number(level) >= 50),
      [],
    )
  }
})

t.test('the end of the input cancels running calls after a while, and ends the server', async (t) => {
  const http = await LegacyHttp.start(t)
  const pipe = openPipe(t, { url: http.url })
  pipe.line(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wait', arguments: { ms: 60_000 }, _meta: envelope() },
    }),
  )
  await until(() => http.of('tools/call').length === 1)
  await pipe.end()
  await until(() => http.of('notifications/cancelled').length === 1)
  t.same(pipe.messages(), [])
})
