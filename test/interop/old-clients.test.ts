/** Real clients of every legacy revision use servers of both eras through the bridge, over every transport they know. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import { startEverything } from './legacy-servers.js'
import { MODERN_WAYS, startModern } from './modern-servers.js'
import { bridge, type Connected, clients } from './old-clients.js'

const NOTE = 'note://today'
/** How often something is tried, and for how many hundredths of a second it is waited for. */
const ATTEMPTS = 50
const PATIENCE = 20
const DOCUMENT = 'demo://resource/static/document/features.md'

const says = (text: string | RegExp) => ({ content: [{ type: 'text', text }] })

/** What a client does with a server, by what there is to be seen of it. */
type Use = (t: Test, connected: Connected) => Promise<void>

const modern: Readonly<Record<string, Use>> = {
  async 'it is told what the server says of itself'(t, { client }) {
    t.match(client.getServerVersion(), { name: 'modern', version: '1.2.3' })
    t.equal(client.getInstructions(), 'Ask for anything.')
    await client.ping()
  },

  async 'it is listed what there is'(t, { client }) {
    const { tools } = await client.listTools()
    t.strictSame(
      tools.map(({ name }) => name).sort(),
      ['ask', 'change', 'echo', 'fails', 'kinds', 'log', 'primes', 'steps', 'stopped', 'touch', 'wait'].sort(),
    )
    t.match((await client.listPrompts()).prompts, [{ name: 'weather', arguments: [{ name: 'city', required: true }] }])
    t.match((await client.listResources()).resources, [{ uri: NOTE, mimeType: 'text/plain' }])
    t.match((await client.listResourceTemplates()).resourceTemplates, [{ uriTemplate: 'note://day/{day}' }])
  },

  async 'its calls are answered, and what a tool could not do is a result'(t, { client }) {
    t.match(await client.callTool({ name: 'echo', arguments: { message: 'Grüezi' } }), says('Echo: Grüezi'))
    t.match(await client.callTool({ name: 'fails' }), { ...says('It does not work'), isError: true })
    await t.rejects(client.callTool({ name: 'no-such-tool' }), { code: -32602 })
  },

  async 'it is told in words that it knows what is newer than it'(t, { client, revision }) {
    const { content } = await client.callTool({ name: 'kinds' })
    const kinds = (content as { type: string }[]).map(({ type }) => type)
    const audio = revision === '2024-11-05' ? 'resource' : 'audio'
    const link = String(revision) < '2025-06-18' ? 'text' : 'resource_link'
    t.strictSame(kinds, ['text', 'image', audio, 'resource', link])
    const { structuredContent } = await client.callTool({ name: 'primes' })
    t.strictSame(structuredContent, String(revision) < '2025-06-18' ? undefined : { result: [2, 3, 5] })
  },

  async 'it reads resources, gets prompts and completes arguments'(t, { client }) {
    t.match(await client.readResource({ uri: NOTE }), { contents: [{ uri: NOTE, text: 'Nothing new.' }] })
    t.match(await client.readResource({ uri: 'note://day/7' }), { contents: [{ text: 'Day 7' }] })
    await t.rejects(client.readResource({ uri: 'note://nowhere' }), { code: -32002, message: /not found/ })
    const prompt = await client.getPrompt({ name: 'weather', arguments: { city: 'Bern' } })
    t.match(prompt.messages, [{ role: 'user', content: { type: 'text', text: 'What is it like in Bern?' } }])
    await t.rejects(client.getPrompt({ name: 'no-such-prompt' }), { code: -32602 })
    const ref = { type: 'ref/prompt' as const, name: 'weather' }
    const { completion } = await client.complete({ ref, argument: { name: 'city', value: 'Be' } })
    t.strictSame(completion.values, ['Bern', 'Berlin'])
  },

  async 'progress increases step by step and comes before the result'(t, { client, received }) {
    received.length = 0
    await client.callTool({ name: 'steps', arguments: { count: 5 } }, undefined, { onprogress: () => {} })
    t.strictSame(ofCalls(received).map(progressIn), [1, 2, 3, 4, 5, 'result'])
    received.length = 0
    await client.callTool({ name: 'steps', arguments: { count: 2 } })
    t.strictSame(ofCalls(received).map(progressIn), ['result'])
  },

  async 'only what is severe enough is logged, and nothing before a level is set'(t, { client, received }) {
    received.length = 0
    await client.callTool({ name: 'log' })
    t.strictSame(notified(received, 'notifications/message'), [])
    await client.setLoggingLevel('warning')
    // On a pipe that others share, what is logged while they call is shown to nobody, because it may be theirs.
    const logs = () => notified(received, 'notifications/message')
    await repeated(client.callTool.bind(client, { name: 'log' }), () => logs().length > 0)
    const warning = { level: 'warning', logger: 'tests', data: 'a warning' }
    t.ok(logs().every((log) => isDeepStrictEqual(log, warning)))
  },

  async 'it is told of changes to what it has subscribed to, and of lists'(t, { client, received }) {
    await client.subscribeResource({ uri: NOTE })
    await client.callTool({ name: 'touch' })
    await until(() => notified(received, 'notifications/resources/updated').length > 0, 'an update')
    t.strictSame(notified(received, 'notifications/resources/updated')[0], { uri: NOTE })
    await client.unsubscribeResource({ uri: NOTE })
    // It is told of lists from when somebody listens, which it may not do yet.
    await repeated(client.callTool.bind(client, { name: 'change' }), () => listChanges(received) > 0)
    received.length = 0
    await client.callTool({ name: 'touch' })
    await repeated(client.callTool.bind(client, { name: 'change' }), () => listChanges(received) > 0)
    t.strictSame(notified(received, 'notifications/resources/updated'), [])
  },

  async 'a call that it gives up is given up by the server, too'(t, { client, revision }) {
    const name = `${t.fullname} ${String(revision)}`
    const controller = new AbortController()
    const options = { onprogress: () => controller.abort(new Error('enough')), signal: controller.signal }
    await t.rejects(client.callTool({ name: 'wait', arguments: { name } }, undefined, options), { message: /enough/ })
    t.match(await client.callTool({ name: 'stopped', arguments: { name } }), says(`${name} was given up`))
  },

  async 'its model is asked in the middle of a call'(t, { client }) {
    t.match(await client.callTool({ name: 'ask' }), says(/The model says: .*I am /))
  },
}

const everything: Readonly<Record<string, Use>> = {
  async 'it is told what the server says of itself'(t, { client }) {
    t.match(client.getServerVersion(), { name: 'mcp-servers/everything', version: '2.0.0' })
    await client.ping()
  },

  async 'it is listed what there is'(t, { client }) {
    const names = (await client.listTools()).tools.map(({ name }) => name)
    for (const name of ['echo', 'get-sum', 'trigger-sampling-request']) t.ok(names.includes(name), name)
    t.match((await client.listPrompts()).prompts, [{ name: 'simple-prompt' }, { name: 'args-prompt' }])
    t.ok((await client.listResources()).resources.some(({ uri }) => uri === DOCUMENT))
    t.equal((await client.listResourceTemplates()).resourceTemplates.length, 2)
  },

  async 'its calls are answered, and what a tool could not do is a result'(t, { client }) {
    t.match(await client.callTool({ name: 'echo', arguments: { message: 'Grüezi' } }), says('Echo: Grüezi'))
    t.match(await client.callTool({ name: 'no-such-tool' }), { ...says(/not found/), isError: true })
  },

  async 'it reads resources, gets prompts and completes arguments'(t, { client }) {
    t.match(await client.readResource({ uri: 'demo://resource/dynamic/text/7' }), {
      contents: [{ text: 'Resource 7: ' }],
    })
    await t.rejects(client.readResource({ uri: 'demo://nowhere' }), { code: -32602, message: /not found/ })
    const prompt = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Bern' } })
    t.match(prompt.messages, [{ role: 'user', content: { type: 'text', text: "What's weather in Bern?" } }])
    const ref = { type: 'ref/prompt' as const, name: 'completable-prompt' }
    const { completion } = await client.complete({ ref, argument: { name: 'department', value: 'S' } })
    t.strictSame(completion.values, ['Sales', 'Support'])
  },

  async 'progress increases step by step and comes before the result'(t, { client, received }) {
    received.length = 0
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 0.5, steps: 5 } }
    await client.callTool(call, undefined, { onprogress: () => {} })
    t.strictSame(ofCalls(received).map(progressIn), [1, 2, 3, 4, 5, 'result'])
  },

  async 'it is sent the log, and told of changes to what it has subscribed to'(t, { client, received }) {
    await client.setLoggingLevel('info')
    // The server logs that somebody subscribes, and throws away what it logs before the client listens.
    const subscribe = () => client.subscribeResource({ uri: DOCUMENT })
    await repeated(subscribe, () => notified(received, 'notifications/message').length > 0)
    t.match(notified(received, 'notifications/message')[0], { level: 'info', data: new RegExp(DOCUMENT) })
    await client.callTool({ name: 'toggle-subscriber-updates' })
    await until(() => notified(received, 'notifications/resources/updated').length > 0, 'an update')
    t.strictSame(notified(received, 'notifications/resources/updated')[0], { uri: DOCUMENT })
    await client.callTool({ name: 'toggle-subscriber-updates' })
    await client.unsubscribeResource({ uri: DOCUMENT })
  },

  async 'a call that it gives up is not answered, and the next one is'(t, { client, received }) {
    received.length = 0
    const controller = new AbortController()
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 2, steps: 10 } }
    const options = { onprogress: () => controller.abort(new Error('enough')), signal: controller.signal }
    await t.rejects(client.callTool(call, undefined, options), { message: /enough/ })
    // As long as the call would have taken.
    await client.callTool({ ...call, arguments: { duration: 2, steps: 1 } })
    // These clients give a request's id for its progress token. Where a stream can be taken up again, an error ends it.
    const [{ progressToken: id }] = notified(received, 'notifications/progress') as [{ progressToken: unknown }]
    t.notOk(received.some((message) => 'result' in message && message.id === id))
  },

  async 'its model is asked in the middle of a call'(t, { client }) {
    const call = { name: 'trigger-sampling-request', arguments: { prompt: 'Who are you?' } }
    t.match(await client.callTool(call), says(/I am /))
  },
}

/** What belongs to calls: their progress and their answers. */
function ofCalls(received: readonly JSONRPCMessage[]): JSONRPCMessage[] {
  return received.filter((message) => !('method' in message) || message.method === 'notifications/progress')
}

function progressIn(message: JSONRPCMessage): unknown {
  return 'method' in message ? message.params?.['progress'] : 'result'
}

/** Params of the notifications of this kind. */
function notified(received: readonly JSONRPCMessage[], method: string): unknown[] {
  return received.flatMap((message) => ('method' in message && message.method === method ? [message.params] : []))
}

function listChanges(received: readonly JSONRPCMessage[]): number {
  return notified(received, 'notifications/tools/list_changed').length
}

/** Does something again and again until it shows. */
async function repeated(what: () => Promise<unknown>, shows: () => boolean): Promise<void> {
  for (let attempt = 0; !shows(); attempt++) {
    if (attempt === ATTEMPTS) throw new Error(`It does not show after ${ATTEMPTS} attempts`)
    await what()
    for (let wait = 0; wait < PATIENCE && !shows(); wait++) await sleep(10)
  }
}

const ways = { modern: await startModern(t), everything: await startEverything(t) }
const servers = [
  ...MODERN_WAYS.map((way) => ({ server: `a modern server over ${way}`, named: ways.modern[way], uses: modern })),
  ...(['stdio', 'Streamable HTTP', 'HTTP+SSE'] as const).map((way) => ({
    server: `server-everything over ${way}`,
    named: ways.everything[way],
    uses: everything,
  })),
]
const bridged = await Promise.all(servers.map(async (row) => ({ ...row, bridged: await bridge(t, row.named) })))
const cases = bridged.flatMap((row) => clients.map((client) => ({ ...row, ...client })))

t.jobs = 8
await Promise.all(
  cases.map(({ name, server, bridged, uses, revision, connect }) =>
    t.test(`${name} uses ${server}`, { buffered: true }, async (t) => {
      const connected = await connect(t, bridged)
      t.equal(connected.revision, revision)
      for (const [what, use] of Object.entries(uses)) await t.test(what, (t) => use(t, connected))
    }),
  ),
)
