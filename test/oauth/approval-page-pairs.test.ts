/** People approve calls at the page of the bridge, between every client over HTTP and every server. */
import t from 'tap'
import type { Question } from '../matrix/client.js'
import { CLIENTS, connect, type Reachable } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { as, browserOf, TOKENS } from '../support/approving.js'
import { startCompany } from '../support/company.js'

// What is done here is to wait, most of the time.
t.jobs = 4
for (const kind of CLIENTS.filter(({ transport }) => transport !== 'stdio'))
  for (const serverKind of SERVERS)
    t.test(`${nameOf(kind)} client, ${nameOf(serverKind)} server: the person decides at the page`, async (t) => {
      const server = await serverKind.start(t)
      const own = { ...server.entry, tools: { approve: ['mirrored'], approveBy: 'page' } }
      const company = await startCompany(t, { auth: { tokens: TOKENS }, settings: { mcpServers: { test: own } } })
      const browser = await browserOf('ada', company.origin)
      let choice = 'Run'
      const pressed: Promise<unknown>[] = []
      const plan = {
        capabilities: { elicitation: { url: {} } },
        answers: ({ params }: Question) => {
          pressed.push(browser.go(String(params['url'])).then((shown) => browser.press(shown, choice)))
          return { action: 'accept' }
        },
      }
      const client = connect(kind, { url: company.url, headers: as('ada') } as unknown as Reachable, plan)
      await client.open()
      const use = () => client.call('tools/call', { name: 'mirrored', arguments: {} })
      t.ok((await use()).message.result)
      const calls = () => server.reached().filter(({ message }) => message['method'] === 'tools/call').length
      t.equal(calls(), 1)
      choice = 'Do not run'
      t.match(JSON.stringify((await use()).message), /the person has refused it/)
      t.equal(calls(), 1)
      await Promise.all(pressed)
      t.same(client.complaints, [])
      await client.close()
    })
