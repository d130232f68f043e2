/**
 * The bytes of a large answer are free at the next minor garbage collection after it has passed.
 *
 * Runs in its own process: it sets a flag of V8, and counts the memory of all buffers.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { Id } from '../../src/base/rpc/message.js'
import { raw } from '../../src/base/rpc/splice.js'
import { unreadResponse } from '../../src/base/rpc/unread-response.js'
import { replyIn } from '../../src/clients/outcome.js'
import type { Call, Final } from '../../src/mcp/protocol/call.js'
import { decodeReceived } from '../../src/mcp/protocol/modern-server.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
const MIB = 1024 * 1024
const ANSWERS = 32
/** MiB that may stay. */
const FEW = ANSWERS / 4
const COLLECTIONS = 50
const CALL = { method: 'tools/call' } as Call

/** A large answer that has not been read, in a buffer of its own. */
function answer() {
  const head = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"'
  const bytes = Buffer.allocUnsafeSlow(MIB).fill('x')
  bytes.write(head)
  bytes.write('"}]}}', MIB - 5)
  const response = unreadResponse([bytes], { id: '1' as Id, prefix: 'mcp-bridge/' }, () => true)
  if (!response) throw new Error('the answer was read')
  return response
}

/** MiB of buffers that stay when some answers have been used, and only young objects are collected. */
async function kept(use: () => unknown): Promise<number> {
  // The first ones make what all others share.
  for (let n = 0; n < 4; n++) use()
  collect()
  await turn()
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < ANSWERS; n++) use()
  const kept = () => (process.memoryUsage().arrayBuffers - before) / MIB
  // V8 frees buffers beside the program.
  for (let n = 0; n < COLLECTIONS && kept() >= FEW; n++) {
    collect({ type: 'minor' })
    await turn()
  }
  return kept()
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 1))

const USES: Record<string, () => unknown> = {
  'an answer itself': answer,
  'its outcome for a legacy client': () => replyIn(answer()),
  'its reply for a modern client': () => decodeReceived(CALL, answer()),
}
for (const [what, use] of Object.entries(USES))
  t.test(`minor collections free the bytes of ${what}`, async (t) => {
    t.ok((await kept(use)) < FEW)
  })

t.test('a copy of an unread reply has all members of the reply', (t) => {
  const reply = decodeReceived(CALL, answer())
  const copy = { ...reply } as Extract<Final, { kind: 'result' }>
  t.same(Object.keys(copy).sort(), ['cache', 'isToolError', 'kind', 'received', 'result', 'server', 'type'])
  t.equal(raw(copy.result, 'content')?.length, raw((reply as typeof copy).result, 'content')?.length)
  t.end()
})
