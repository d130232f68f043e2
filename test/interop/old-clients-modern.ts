/** Real clients of every legacy revision use modern servers through the bridge, over every transport that they know. */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { repeatUntil, until } from '../support/eventually.js'
import type { Part } from '../support/part.js'
import { startModern } from './modern-servers.js'
import { notified, ofCalls, progressIn, says, type Uses, useAll } from './uses.js'

const NOTE = 'note://today'
let days = 0

const uses: Uses = {
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
    await repeatUntil(
      () => client.callTool({ name: 'log' }),
      () => logs().length > 0,
    )
    const warning = { level: 'warning', logger: 'tests', data: 'a warning' }
    t.ok(logs().every((log) => isDeepStrictEqual(log, warning)))
  },

  async 'it is told of changes to what it has subscribed to, and of lists'(t, { client, received }) {
    // The server is one for all clients, so each has a day of its own.
    const day = String(++days)
    const uri = `note://day/${day}`
    const touch = { name: 'touch', arguments: { day } }
    const updates = () => notified(received, 'notifications/resources/updated')
    await client.subscribeResource({ uri })
    await client.callTool(touch)
    await until(() => updates().length > 0, 'an update')
    t.strictSame(updates(), [{ uri }])
    await client.unsubscribeResource({ uri })
    await client.callTool(touch)
    // It is told of lists from when somebody listens, which it may not do yet.
    const isTold = () => notified(received, 'notifications/tools/list_changed').length > 0
    await repeatUntil(() => client.callTool({ name: 'change' }), isTold)
    t.strictSame(updates(), [{ uri }])
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

export async function testOldClients(part: Part): Promise<void> {
  const { stdio, 'Streamable HTTP': http } = await startModern(t)
  await useAll(t, { 'a modern server on stdio': stdio, 'a modern server over HTTP': http }, uses, part)
}
