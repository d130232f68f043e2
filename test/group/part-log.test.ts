/** The common span of the parts of a call in a group ends as the call does. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import type { CallLog } from '../../src/mcp/protocol/call.js'
import { type PartsEnd, partLog } from '../../src/middle/group/part-log.js'
import { result } from '../support/calls.js'

/** How the span ends if the parts end like this, and together so. */
function endWith(how: PartsEnd, ...parts: unknown[]): unknown {
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
  over(how)
  t.equal(ended.length, 1, 'once')
  return ended[0]
}

t.test(
  'the span of a list of a group is ok if the list is answered, cancelled if nobody waits, else as its parts',
  (t) => {
    const answer = result({})
    const fault = new Fault('upstreamUnavailable', 'It is not available')
    t.equal(endWith('failed', answer, answer), answer)
    t.equal(endWith('failed', fault, answer), answer, 'one server is missing')
    t.equal(endWith('failed', answer, fault), answer, 'in any order')
    t.equal(endWith('failed', fault, fault), fault, 'all are missing')
    t.equal(endWith('failed', undefined, undefined), undefined)
    for (const parts of [
      [answer, fault],
      [fault, undefined],
      [undefined, undefined],
    ])
      t.match(endWith('answered', ...parts), { kind: 'result' }, 'those that are late are missing in the answer')
    t.equal(endWith('cancelled', answer, undefined), undefined, 'one server was faster than the client left')
    t.end()
  },
)
