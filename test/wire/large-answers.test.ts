/** Answers that are larger than what may wait for a slow client, where the limits allow them: they arrive in every lane. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { startBridge } from '../support/bridge.js'

const BYTES = 20 * 1024 * 1024
const LIMITS = { lineBytes: 2 * BYTES, answerBytes: 2 * BYTES }

for (const kind of CLIENTS)
  for (const modern of [true, false])
    t.test(
      `${nameOf(kind)} client, ${modern ? 'modern' : 'legacy'} server: a large answer comes after its progress`,
      async (t) => {
        const server = fileURLToPath(new URL('../fixtures/lengthy.mjs', import.meta.url))
        const entry = { command: process.execPath, args: [server, JSON.stringify({ modern })] }
        const client = connect(kind, await startBridge(t, entry, { limits: LIMITS }))
        await client.open()
        const params = { name: 'long', arguments: { bytes: BYTES } }
        const { message } = await client.call('tools/call', params, { meta: { progressToken: 'p' } })
        const [block] = (message.result?.['content'] ?? []) as { text: string }[]
        t.equal(block?.text.length, BYTES / 2, JSON.stringify(message).slice(0, 300))
        t.equal(client.of('notifications/progress').length, 1)
        t.same(client.complaints, [])
        await client.close()
      },
    )
