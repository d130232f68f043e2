/** Real clients of every legacy revision use server-everything through the bridge, over every transport that both know. */
import t from 'tap'
import { repeatUntil, until } from '../support/eventually.js'
import type { Part } from '../support/part.js'
import { startEverything } from './legacy-servers.js'
import { notified, ofCalls, progressIn, says, type Uses, useAll } from './uses.js'

const DOCUMENT = 'demo://resource/static/document/features.md'

const uses: Uses = {
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
    await repeatUntil(subscribe, () => notified(received, 'notifications/message').length > 0)
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

  // Last, because over Streamable HTTP the client then asks for the rest of a stream that had none, and gets all there was.
  async 'it is told of a resource that is not there'(t, { client }) {
    await t.rejects(client.readResource({ uri: 'demo://nowhere' }), { code: -32602, message: /not found/ })
  },
}

export async function testOldClients(part: Part): Promise<void> {
  const { stdio, 'Streamable HTTP': http, 'HTTP+SSE': sse } = await startEverything(t)
  const servers = {
    'server-everything on stdio': stdio,
    'server-everything over Streamable HTTP': http,
    'server-everything over HTTP+SSE': sse,
  }
  await useAll(t, servers, uses, part)
}
