/** Programs that write banners and prompts to stdout, without a line break before their messages. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { unkind } from '../support/unkind.js'

const PROMPTS: readonly [name: string, prompt: string | string[]][] = [
  ['a prompt', '> '],
  ['a prompt in colour', '\u001b[1m\u001b[32mserver>\u001b[0m '],
  ['a banner with JSON', 'Loaded {"port": 1, "tools": ["a", {"b": "}"}]} from config.json '],
  ['several banners', 'Welcome!\nVersion {1.0}\n"quoted\nReady: '],
  ['a prompt now and then', ['', 'mcp> ', 'done {"x":1}']],
]

t.test('reads messages behind a banner or a prompt, in each lane', async (t) => {
  for (const [name, prompt] of PROMPTS)
    for (const [era, program] of [
      ['legacy', legacyStdio(t, { prompt })],
      ['modern', modernStdio(t, { prompt })],
    ] as const) {
      const { url, log } = await startBridge(t, program.server)
      const params = { name: 'echo', arguments: { x: 1 } }
      const said = { result: { content: [{ text: '{"x":1}' }] } }
      for (let n = 0; n < 2; n++)
        t.match((await call(url, 'tools/call', params)).message, said, `${name}, ${era}, modern client`)
      const client = await LegacyClient.open(url)
      for (let n = 0; n < 2; n++)
        t.match((await client.call('echo', { x: 1 })).message, said, `${name}, ${era}, legacy client`)
      const warned = log.filter(({ event, what }) => event === 'message_repaired' && /line break/.test(String(what)))
      t.ok(warned.length > 0 && warned.length <= program.pids().length, `${name}, ${era}: said once for each process`)
    }
})

const raw = (url: string, bytes: string): Promise<Answer> =>
  call(url, 'tools/call', { name: 'raw', arguments: { hex: Buffer.from(bytes, 'latin1').toString('hex') } })
const message = (text: string) => `{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"${text}"}]}}`
const textOf = ({ message: { result } }: Answer) => (result?.['content'] as { text: string }[] | undefined)?.[0]?.text

async function started(t: Test) {
  const { url } = await startBridge(t, unkind(t).server)
  await raw(url, `${message('first')}\n`)
  return url
}

t.test('reads one message from a line that parses, whatever is in it', async (t) => {
  const url = await started(t)
  const inner = JSON.stringify(message('inner'))
  const lines = [inner, `{"log":${inner}}`, `{"log":${message('inner')}}`, `[${inner},1]`]
  for (const line of lines) t.equal(textOf(await raw(url, `${line}\n${message('own')}\n`)), 'own', line)
  t.equal(textOf(await raw(url, `${message('own').replace('own', '> {\\"x\\":1}')}\n`)), '> {"x":1}')
})

t.test('a logged message is not a message: those that the bridge sent, and answers to no request', async (t) => {
  const url = await started(t)
  const noise = [
    'received: {"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{"name":"raw"}}',
    'sent: {"jsonrpc":"2.0","id":{before},"result":{"content":[]}}',
    'state: {"id":{id},"result":{}}',
  ]
  for (const line of noise) t.equal(textOf(await raw(url, `${line}\n${message('own')}\n`)), 'own', line)
})

t.test('the beginning of an answer before a message fails the call that it answers', async (t) => {
  const url = await started(t)
  const [broken, whole] = await Promise.all([
    raw(url, '{"jsonrpc":"2.0","id":{id},"result":{"content":['),
    raw(url, `${message('whole')}\n`),
  ])
  t.equal(textOf(whole), 'whole')
  t.match(broken.message.error, { data: { reason: 'upstream_protocol_error' } })
})
