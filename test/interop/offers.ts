/** What legacy servers offer, real clients of the modern era find and use through the bridge. */
import type { CallToolRequest, Client, CompleteRequest, GetPromptRequest } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { combinations, type Part } from '../support/part.js'
import { EVERYTHING, FILESYSTEM, MEMORY, type Named, startEverything, WAYS } from './legacy-servers.js'
import { clients, connectDirectly } from './modern-clients.js'

/** What is asked of a server, and a pattern that its answer has to match. */
interface Offer {
  tools: [call: CallToolRequest['params'], answer: object][]
  resources?: [uri: string, contents: object][]
  prompts?: [get: GetPromptRequest['params'], text: string][]
  completions?: [complete: CompleteRequest['params'], values: string[]][]
}

const says = (text: string) => ({ content: [{ type: 'text', text }] })
const fails = (text: string) => ({ ...says(text), isError: true })

const everything: Offer = {
  tools: [
    [{ name: 'echo', arguments: { message: 'Grüezi' } }, says('Echo: Grüezi')],
    [{ name: 'get-tiny-image' }, { content: [{ type: 'text' }, { type: 'image', mimeType: 'image/png' }, {}] }],
    [
      { name: 'get-structured-content', arguments: { location: 'Chicago' } },
      { structuredContent: { temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 } },
    ],
    [{ name: 'get-sum', arguments: { a: 'one', b: 2 } }, fails('Invalid arguments for tool get-sum')],
  ],
  resources: [
    ['demo://resource/dynamic/text/7', { uri: 'demo://resource/dynamic/text/7', text: 'Resource 7: ' }],
    ['demo://resource/dynamic/blob/7', { uri: 'demo://resource/dynamic/blob/7', blob: /^UmVzb3VyY2UgNz/ }],
    ['demo://resource/static/document/features.md', { mimeType: 'text/markdown', text: '# Everything Server' }],
  ],
  prompts: [
    [{ name: 'args-prompt', arguments: { city: 'Bern', state: 'BE' } }, "What's weather in Bern, BE?"],
    [{ name: 'args-prompt', arguments: { city: 'Bern' } }, "What's weather in Bern?"],
    [{ name: 'simple-prompt' }, 'This is a simple prompt without arguments.'],
  ],
  completions: [
    [completion('completable-prompt', { department: 'S' }), ['Sales', 'Support']],
    [completion('completable-prompt', { name: '' }, { department: 'Sales' }), ['David', 'Eve', 'Frank']],
    [
      {
        ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' },
        argument: { name: 'resourceId', value: '3' },
      },
      ['3'],
    ],
  ],
}

function filesystem(folder: string): Offer {
  const path = `${folder}/note.txt`
  return {
    tools: [
      [{ name: 'read_text_file', arguments: { path } }, { structuredContent: { content: 'first\nsecond\n' } }],
      [{ name: 'list_directory', arguments: { path: folder } }, says('[FILE] note.txt')],
      [{ name: 'write_file', arguments: { path, content: 'ü\n' } }, says('Successfully wrote')],
      [{ name: 'read_text_file', arguments: { path } }, says('ü\n')],
      [{ name: 'read_text_file', arguments: { path: '/etc/passwd' } }, fails('Access denied')],
    ],
  }
}

const bridge = { name: 'mcp-bridge', entityType: 'program', observations: ['carries'] }
const memory: Offer = {
  tools: [
    [{ name: 'create_entities', arguments: { entities: [bridge] } }, { structuredContent: { entities: [bridge] } }],
    [{ name: 'search_nodes', arguments: { query: 'carr' } }, { structuredContent: { entities: [bridge] } }],
    [
      { name: 'add_observations', arguments: { observations: [{ entityName: 'nobody', contents: ['is'] }] } },
      fails('Entity with name nobody not found'),
    ],
  ],
  resources: [['memory://knowledge-graph', { mimeType: 'application/json', text: '"name": "mcp-bridge"' }]],
}

interface Row {
  name: string
  offer(t: Test): { server: Named; offer: Offer }
  /** The same server without the bridge. */
  direct: Client
}

const ways = await startEverything(t)
const direct = {
  everything: (await connectDirectly(t, [EVERYTHING])).client,
  filesystem: (await connectDirectly(t, [FILESYSTEM, t.testdir({})])).client,
  memory: (await connectDirectly(t, [MEMORY])).client,
}

const rows: Row[] = [
  ...WAYS.map((way) => ({
    name: `server-everything over ${way}`,
    offer: () => ({ server: ways[way], offer: everything }),
    direct: direct.everything,
  })),
  {
    name: 'server-filesystem over stdio',
    offer: (t) => {
      const folder = t.testdir({ 'note.txt': 'first\nsecond\n' })
      return { server: { upstream: `stdio:node ${FILESYSTEM} ${folder}` }, offer: filesystem(folder) }
    },
    direct: direct.filesystem,
  },
  {
    name: 'server-memory over stdio',
    offer: (t) => {
      const env = { MEMORY_FILE_PATH: `${t.testdir({})}/memory.jsonl` }
      return { server: { upstream: `stdio:node ${MEMORY}`, env }, offer: memory }
    },
    direct: direct.memory,
  },
]

function completion(
  name: string,
  argument: Record<string, string>,
  known?: Record<string, string>,
): CompleteRequest['params'] {
  const [first] = Object.entries(argument) as [[string, string]]
  return {
    ref: { type: 'ref/prompt', name },
    argument: { name: first[0], value: first[1] },
    ...(known && { context: { arguments: known } }),
  }
}

/** Tests a part of all combinations of servers and clients. */
export async function testOffers(part: Part): Promise<void> {
  t.jobs = 4
  await Promise.all(
    combinations(rows, clients, part).map(([{ name, direct, ...row }, { name: who, connect }]) =>
      t.test(`${who} can use everything that ${name} offers`, { buffered: true }, async (t) => {
        const { server, offer } = row.offer(t)
        const { client } = await connect(t, server)

        await t.test('it uses 2026-07-28 with the server it asked for', async (t) => {
          t.equal(client.getProtocolEra(), 'modern')
          t.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
          t.strictSame(client.getServerVersion(), direct.getServerVersion())
          t.equal(client.getInstructions(), direct.getInstructions())
        })

        await t.test('it gets the lists of the server', async (t) => {
          const { tools } = await direct.listTools()
          // How a tool wants to be run as a task is for 2025-11-25 only.
          t.strictSame(
            (await client.listTools()).tools,
            tools.map(({ execution: _, ...tool }) => tool),
          )
          t.strictSame((await client.listResources()).resources, (await direct.listResources()).resources)
          const { resourceTemplates } = await direct.listResourceTemplates()
          t.strictSame((await client.listResourceTemplates()).resourceTemplates, resourceTemplates)
          t.strictSame((await client.listPrompts()).prompts, (await direct.listPrompts()).prompts)
        })

        await t.test('its calls are answered, and a failure of a tool is a result', async (t) => {
          for (const [call, answer] of offer.tools) t.match(await client.callTool(call), answer, call.name)
          t.match(await client.callTool({ name: 'no-such-tool' }), fails('Tool no-such-tool not found'))
        })

        if (offer.resources) {
          await t.test('it reads resources, and gets an error for a missing one', async (t) => {
            for (const [uri, contents] of offer.resources ?? [])
              t.match(await client.readResource({ uri }), { contents: [contents] }, uri)
            await t.rejects(client.readResource({ uri: 'demo://nowhere' }), { code: -32602, message: /not found/ })
          })
        }

        if (offer.prompts) {
          await t.test('it gets prompts with its arguments, and an error for a missing one', async (t) => {
            for (const [get, text] of offer.prompts ?? [])
              t.match(await client.getPrompt(get), { messages: [{ role: 'user', content: { type: 'text', text } }] })
            await t.rejects(client.getPrompt({ name: 'no-such-prompt' }), { code: -32602, message: /not found/ })
          })
        }

        if (offer.completions) {
          await t.test('it completes arguments, given the known ones', async (t) => {
            for (const [complete, values] of offer.completions ?? [])
              t.strictSame((await client.complete(complete)).completion.values, values)
          })
        }

        const unoffered = [
          ...(offer.resources ? [] : ['resources/list' as const]),
          ...(offer.prompts ? [] : ['prompts/list' as const]),
        ]
        if (unoffered.length > 0) {
          await t.test('it gets an error for what the server does not offer', async (t) => {
            // Over HTTP the status is 404, and this client reads no JSON-RPC out of that: it has the text in its error.
            for (const method of unoffered) {
              await t.rejects(client.request({ method }), {
                message: `Method not found: the server does not offer ${method}`,
              })
            }
          })
        }
      }),
    ),
  )
}
