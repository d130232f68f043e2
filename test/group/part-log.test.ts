/** The common span of the parts of a call in a group ends as the call does. */
import t from 'tap'
import { Fault } from '../../src/fault/fault.js'
import { partLog } from '../../src/group/part-log.js'
import type { CallLog } from '../../src/protocol/call.js'
import { result } from '../support/calls.js'

/** How the span ends if the parts end like this. */
function endWith(...parts: unknown[]): unknown {
  const ended: unknown[] = []
  const log = {
    note() {},
    warn() {},
    handedOver: () => ({ trace: undefined, over: (last?: unknown) => ended.push(last) }),
  }
  const { log: ofParts, over } = partLog(log as unknown as CallLog)
  const spans = parts.map(() => ofParts.handedOver?.())
  parts.forEach((part, at) => {
    spans[at]?.over(part as never)
  })
  over()
  t.equal(ended.length, 1, 'once')
  return ended[0]
}

t.test('the span of a list of a group is ok if a server has answered, and cancelled only if all parts were', (t) => {
  const answer = result({})
  const fault = new Fault('upstreamUnavailable', 'It is not available')
  t.equal(endWith(answer, answer), answer)
  t.equal(endWith(fault, answer), answer, 'one server is missing')
  t.equal(endWith(answer, fault), answer, 'in any order')
  t.equal(endWith(fault, fault), fault, 'all are missing')
  t.equal(endWith(undefined, undefined), undefined)
  t.end()
})
