/** Clients of the SDKs open the page where their person decides, and wait for the choice, however long it takes. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { pause } from '../../src/base/time/pause.js'
import { as, browserOf, TOKENS } from '../support/approving.js'
import { startCompany } from '../support/company.js'
import { ModernHttp as Server } from '../support/modern-http.js'

const INFO = { name: 'sdk', version: '1' }
const OPTIONS = { capabilities: { elicitation: { url: {} } } }
type Opened = { params: { url?: string | undefined } }

const CLIENTS = {
  'SDK v2': async (url: string, opened: (asked: Opened) => void) => {
    const client = new ModernClient(INFO, { ...OPTIONS, versionNegotiation: { mode: { pin: '2026-07-28' } } })
    client.setRequestHandler('elicitation/create', (asked) => {
      opened(asked as Opened)
      return { action: 'accept' as const }
    })
    await client.connect(new ModernHttp(new URL(url), { requestInit: { headers: as('ada') } }))
    return client
  },
  'SDK v1': async (url: string, opened: (asked: Opened) => void) => {
    const client = new LegacyClient(INFO, OPTIONS)
    client.setRequestHandler(ElicitRequestSchema, (asked) => {
      opened(asked as Opened)
      return { action: 'accept' as const }
    })
    await client.connect(new LegacyHttp(new URL(url), { requestInit: { headers: as('ada') } }) as never)
    return client
  },
}

t.jobs = 2
for (const [name, connect] of Object.entries(CLIENTS))
  t.test(`a client of ${name} waits longer than one call does`, async (t) => {
    const server = await Server.start(t)
    const own = { url: server.url, tools: { approve: ['echo'], approveBy: 'page' } }
    const { url, origin } = await startCompany(t, { auth: { tokens: TOKENS }, settings: { mcpServers: { test: own } } })
    const browser = await browserOf('ada', origin)
    const decided: Promise<unknown>[] = []
    const client = await connect(url, ({ params }) => {
      const decide = async () => browser.press(await browser.go(String(params.url)), 'Run')
      decided.push(pause(12_000).then(decide))
    })
    const answer = await client.callTool({ name: 'echo', arguments: { n: 1 } })
    t.match(answer, { content: [{ text: '{"n":1}' }] })
    t.equal(decided.length, 1, 'the person is sent there once')
    await Promise.all(decided)
    t.equal(server.of('tools/call').length, 1)
    await client.close()
  })
