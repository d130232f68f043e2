/**
 * A server of 2026-07-28 and nothing older, as one writes it with the SDK: `modern-server.program.ts stdio`, or
 * `modern-server.program.ts http`, which prints its address when it is ready.
 */
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import { listen, report } from '../conformance/modern/listen.js'

/** Tells of changes, in whichever way the transport has for that. */
interface Changes {
  tools(): void | Promise<void>
  resource(uri: string): void | Promise<void>
}

const NOTE = 'note://today'
const CITIES = ['Basel', 'Bern', 'Berlin', 'Biel']
/** Milliseconds between two steps. */
const STEP = 20

/** Calls that wait, and those that were given up, by the name that the caller gave them. */
const stopped = new Set<string>()
const stops = new EventTarget()

function create(changes: Changes): McpServer {
  const server = new McpServer(
    { name: 'modern', title: 'A modern server', version: '1.2.3' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: {},
        logging: {},
        completions: {},
      },
      instructions: 'Ask for anything.',
    },
  )
  offerTools(server)
  offerWaiting(server)
  offerChanges(server, changes)
  offerNotes(server)
  offerPrompt(server)
  return server
}

function offerTools(server: McpServer): void {
  server.registerTool(
    'echo',
    { title: 'Echo', description: 'Says it again', inputSchema: z.object({ message: z.string() }) },
    ({ message }) => says(`Echo: ${message}`),
  )
  server.registerTool(
    'primes',
    { description: 'Answers with a list', outputSchema: z.array(z.number()), annotations: { readOnlyHint: true } },
    () => ({ ...says('[2,3,5]'), structuredContent: [2, 3, 5] }),
  )
  server.registerTool('kinds', { description: 'Answers with content of every kind' }, () => ({
    content: [
      { type: 'text', text: 'Of every kind' },
      { type: 'image', data: 'aW1hZ2U=', mimeType: 'image/png' },
      { type: 'audio', data: 'c291bmQ=', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: NOTE, mimeType: 'text/plain', text: 'Nothing new.' } },
      { type: 'resource_link', uri: NOTE, name: 'today' },
    ],
  }))
  server.registerTool('fails', { description: 'Never works' }, () => ({ ...says('It does not work'), isError: true }))
  server.registerTool('log', { description: 'Writes to the log' }, async ({ mcpReq }) => {
    await mcpReq.log('debug', 'a detail')
    await mcpReq.log('warning', 'a warning', 'tests')
    return says('logged')
  })
  server.registerTool('ask', { description: 'Asks the model of the client' }, ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses ?? {}, 'answer')
    if (answer.kind === 'sampling') return says(`The model says: ${JSON.stringify(answer.result.content)}`)
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Who are you?' } }]
    return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 10 }) } })
  })
}

function offerWaiting(server: McpServer): void {
  server.registerTool(
    'steps',
    { description: 'Goes step by step', inputSchema: z.object({ count: z.number().int() }) },
    async ({ count }, ctx) => {
      for (let step = 1; step <= count; step++) {
        await sleep(STEP)
        await progress(ctx, step, count)
      }
      return says(`${count} steps`)
    },
  )
  server.registerTool(
    'wait',
    { description: 'Waits to be given up', inputSchema: z.object({ name: z.string() }) },
    async ({ name }, ctx) => {
      await progress(ctx, 1, 2)
      if (!ctx.mcpReq.signal.aborted) await once(ctx.mcpReq.signal, 'abort')
      stopped.add(name)
      stops.dispatchEvent(new Event(name))
      return says('given up')
    },
  )
  server.registerTool(
    'stopped',
    { description: 'Answers when a call that waits was given up', inputSchema: z.object({ name: z.string() }) },
    async ({ name }) => {
      if (!stopped.has(name)) await once(stops, name)
      return says(`${name} was given up`)
    },
  )
}

function offerChanges(server: McpServer, changes: Changes): void {
  server.registerTool(
    'touch',
    { description: 'Changes the note of a day', inputSchema: z.object({ day: z.string() }) },
    async ({ day }) => {
      await changes.resource(`note://day/${day}`)
      return says('changed')
    },
  )
  server.registerTool('change', { description: 'Says that the list of tools has changed' }, async () => {
    await changes.tools()
    return says('changed')
  })
}

function offerNotes(server: McpServer): void {
  server.registerResource('today', NOTE, { title: 'Today', mimeType: 'text/plain' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'text/plain', text: 'Nothing new.' }],
  }))
  const template = new ResourceTemplate('note://day/{day}', {
    list: undefined,
    complete: { day: (begun) => [`${begun}1`] },
  })
  server.registerResource('day', template, { title: 'A day' }, ({ href }, { day }) => ({
    contents: [{ uri: href, text: `Day ${String(day)}` }],
  }))
}

function offerPrompt(server: McpServer): void {
  const city = completable(z.string(), (begun) => CITIES.filter((name) => name.startsWith(begun)))
  server.registerPrompt(
    'weather',
    { title: 'Weather', description: 'Asks for the weather', argsSchema: z.object({ city }) },
    ({ city }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `What is it like in ${city}?` } }] }),
  )
}

function says(text: string) {
  return { content: [{ type: 'text' as const, text }] }
}

async function progress({ mcpReq }: ServerContext, progress: number, total: number): Promise<void> {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return
  await mcpReq.notify({
    method: 'notifications/progress',
    params: { progressToken, progress, total, message: `${progress} of ${total}` },
  })
}

function overStdio(): void {
  const connect = () => {
    const server: McpServer = create({
      tools: () => server.sendToolListChanged(),
      resource: (uri) => server.server.sendResourceUpdated({ uri }),
    })
    return server
  }
  serveStdio(connect, { legacy: 'reject', onerror: report })
  // A call that waits would keep the process.
  process.stdin.once('end', () => process.exit())
}

async function overHttp(): Promise<void> {
  const changes: Changes = {
    tools: () => handler.notify.toolsChanged(),
    resource: (uri) => handler.notify.resourceUpdated(uri),
  }
  const handler = createMcpHandler(() => create(changes), { legacy: 'reject', onerror: report })
  process.stdout.write(`${await listen(handler, 0)}\n`)
}

await (process.argv[2] === 'http' ? overHttp() : overStdio())
