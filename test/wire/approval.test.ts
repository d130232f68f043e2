/** Calls that a person approves, between every client and every server. */
import t from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from '../fixtures/modern-questions.mjs'
import type { Json, Question } from '../matrix/client.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { isApproval, messageOf, person, RUN, toolResult } from '../support/approving.js'
import { startBridge } from '../support/bridge.js'

const ASKED = QUESTIONS as Record<'name', Question>
const MIRRORED = { mirrored: { Region: 'eu' } }

// What is done here is to wait, most of the time.
t.jobs = 4
for (const clientKind of CLIENTS)
  for (const serverKind of SERVERS)
    t.test(`${nameOf(clientKind)} client, ${nameOf(serverKind)} server: a person approves calls`, async (t) => {
      const server = await serverKind.start(t)
      let said: Json | undefined = RUN
      const entry = { ...server.entry, tools: { approve: ['mirrored', 'ask'] } }
      const client = connect(
        clientKind,
        await startBridge(t, entry),
        person(() => said),
      )
      await client.open()
      const calls = () => server.reached().filter(({ message }) => message['method'] === 'tools/call')

      const run = await client.call('tools/call', { name: 'mirrored', arguments: { region: 'eu' } }, MIRRORED)
      t.ok(run.message.result, JSON.stringify(run.message))
      t.equal(client.asked.length, 1)
      t.match(
        messageOf(client.asked[0] as Question),
        /^Run the tool "mirrored" of the server "test"\?\n\nregion: "eu"$/,
      )
      t.match(calls().at(-1)?.text ?? '', /"arguments":\{"region":"eu"\}/)

      const others = [
        [{ action: 'accept', content: { answer: 'Do not run' } }, /the person has refused it/],
        [{ action: 'decline' }, /the person has refused it/],
        [{ action: 'cancel' }, /the person has not approved it/],
      ] as const
      for (const [answer, text] of others) {
        said = answer
        const before = calls().length
        const refused = await client.call('tools/call', { name: 'mirrored', arguments: {} })
        t.match(toolResult(refused.message).content[0]?.text, text)
        t.equal(toolResult(refused.message)['isError'], true)
        t.equal(calls().length, before, 'nothing was sent')
      }

      said = RUN
      const asked = client.asked.length
      t.ok((await client.call('tools/call', { name: 'echo', arguments: { n: 1 } })).message.result)
      t.equal(client.asked.length, asked, 'other tools are not asked for')

      const answered = await client.call('tools/call', { name: 'ask', arguments: { rounds: [{ name: ASKED.name }] } })
      t.match(JSON.stringify(toolResult(answered.message)), /Zoë/, 'the server may ask, too')
      t.same(client.asked.slice(asked).map(isApproval), [true, false])
      t.same(server.complaints(), [])
      t.same(client.complaints, [])
      await client.close()
    })
