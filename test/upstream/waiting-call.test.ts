/** What is left of a call while it waits for its client. */
import t from 'tap'
import type { Call } from '../../src/mcp/protocol/call.js'
import { waitingCall } from '../../src/servers/waiting-call.js'
import { toolCall } from '../support/calls.js'

t.test('keeps nothing of the message that it came in', (t) => {
  const call = toolCall('echo') as Call
  const { params, received, answers } = waitingCall({ ...call, received: { era: 'legacy', id: '1' as never } })
  t.not(params, call.params)
  t.same([received, answers], [undefined, undefined])
  t.end()
})
