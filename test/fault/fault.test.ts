import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { type FaultName, faults } from '../../src/base/fault/faults.js'

t.test('every row follows the specification and the conventions of the bridge', async (t) => {
  // -32042: revision 2025-11-25, for a URL that a person has to open.
  const defined = [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32042]
  // SEP-3415, of the extension for events.
  const ofEvents: Partial<Record<string, number>> = { noSuchEvent: -32023, callbackRefused: -32024 }
  for (const [name, row] of Object.entries(faults)) {
    t.ok(defined.includes(row.code) || row.code === ofEvents[name], `${name} has a code that the specification defines`)
    if (row.blame === 'caller') t.ok(row.status < 500, `${name} is the caller's mistake, and no 5xx`)
    if (row.code === -32603) t.ok('reason' in row, `${name} gives a reason`)
    if ('outcome' in row) t.equal(row.status, 200, `${name} may have been processed, so nobody is invited to retry`)
  }
  for (const code of [-32020, -32021, -32022]) {
    for (const row of Object.values(faults).filter((row) => row.code === code)) t.equal(row.status, 400)
  }
})

t.test('a fault sends what it is, and nothing of its cause', async (t) => {
  const fault = new Fault('upstreamClosed', 'gone', {
    cause: new Error('secret'),
    data: { httpStatus: 500 },
    retryAfter: 1.5,
  })
  t.same(fault.toRpcError(), {
    code: -32603,
    message: 'gone',
    data: '{"reason":"upstream_closed","outcome":"unknown","httpStatus":500,"retryAfterMs":1500}',
  })
  t.same(new Fault('invalidRequest', 'no').toRpcError(), { code: -32600, message: 'no', data: undefined })
})

t.test('an unexpected error is a fault of the bridge, and opaque', async (t) => {
  const cause = new TypeError('internal detail')
  const fault = Fault.from(cause)
  t.equal(fault.fault, 'internal' satisfies FaultName)
  t.equal(fault.status, 500)
  t.equal(fault.cause, cause)
  t.notMatch(JSON.stringify(fault.toRpcError()), /internal detail/)
  const known = new Fault('foreignHost', 'x')
  t.equal(Fault.from(known), known)
})

t.test('the data of every fault is valid JSON, whatever its members', async (t) => {
  const names = Object.keys(faults) as FaultName[]
  const members = fc.dictionary(fc.string(), fc.option(fc.jsonValue(), { nil: undefined }))
  const seconds = fc.option(fc.double({ min: 0 }), { nil: undefined })
  fc.assert(
    fc.property(fc.constantFrom(...names), members, seconds, (name, data, retryAfter) => {
      const fault = new Fault(name, 'm', { data, ...(retryAfter !== undefined && { retryAfter }) })
      const { data: text = '{}' } = fault.toRpcError()
      const { reason } = fault.row
      const own = reason !== undefined && !('reason' in data) ? { reason } : {}
      t.match(JSON.parse(text), own)
    }),
  )
})
