/** A table of the messages that a client may post: how each is classified or refused. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import {
  type Classification,
  type Compat,
  classify,
  classifyLine,
  type SessionState,
} from '../../src/mcp/protocol/classify.js'
import { parseText } from '../support/messages.js'

const COMPAT: Compat = { bareDiscover: true, ignoreVersionSkew: true, draftErrorCodes: false }
const live = (revision: '2025-11-25' | '2025-06-18' | '2025-03-26' | '2024-11-05'): SessionState => ({ revision })

const meta = (version: string) => `"_meta":{"io.modelcontextprotocol/protocolVersion":${version}}`
const request = (method: string, version?: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{${version === undefined ? '' : meta(version)}}}`
const notification = (method: string, version?: string) => request(method, version).replace('"id":1,', '')
const MODERN = '"2026-07-28"'
const RESPONSE = '{"jsonrpc":"2.0","id":1,"result":{}}'

type Outcome = Classification | { code: number; status: number; data?: string[] }
const modern: Classification = { era: 'modern' }
const initialize: Classification = { era: 'legacy', as: 'initialize' }
const message: Classification = { era: 'legacy', as: 'message' }
const refused = (code: number, status = 400, ...data: string[]): Outcome => ({
  code,
  status,
  ...(data.length > 0 && { data }),
})

function outcome(classified: () => Classification): Outcome {
  try {
    const { envelope, ...others } = { envelope: undefined, ...classified() }
    return others
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const data = Object.keys(error.data)
    return { code: error.toRpcError().code, status: error.status, ...(data.length > 0 && { data }) }
  }
}

type Row = [
  row: string,
  body: string,
  header: string | undefined,
  session: SessionState,
  expected: Outcome,
  compat?: Partial<Compat>,
]

const rows: Row[] = [
  ['1: claim and header agree', request('tools/list', MODERN), '2026-07-28', 'none', modern],
  ['1: a session id makes no difference', request('tools/list', MODERN), '2026-07-28', 'gone', modern],
  ['1: nor does a live session', request('tools/list', MODERN), '2026-07-28', live('2025-11-25'), modern],
  ['2: claim without header', request('tools/list', MODERN), undefined, 'none', refused(-32020)],
  ['2: any claim without header', request('tools/list', '"banana"'), undefined, 'none', refused(-32020)],
  ['3: header of another revision', request('tools/list', MODERN), '2025-11-25', 'none', refused(-32020)],
  ['3: a mismatch outranks an unknown version', request('tools/list', '"v999"'), '2026-07-28', 'none', refused(-32020)],
  ['3: case counts', request('tools/list', '"draft-x"'), 'DRAFT-x', 'none', refused(-32020)],
  [
    'a future version',
    request('tools/list', '"2099-01-01"'),
    '2099-01-01',
    'none',
    refused(-32022, 400, 'supported', 'requested'),
  ],
  [
    'a version of old',
    request('tools/list', '"1900-01-01"'),
    '1900-01-01',
    'none',
    refused(-32022, 400, 'supported', 'requested'),
  ],
  [
    'a legacy version per request',
    request('tools/list', '"2025-11-25"'),
    '2025-11-25',
    'none',
    refused(-32022, 400, 'supported', 'requested'),
  ],
  [
    'a claim that is no string',
    request('tools/list', '7'),
    '2026-07-28',
    'none',
    refused(-32602, 400, 'missing', 'supported'),
  ],
  [
    'the same without header',
    request('tools/list', 'null'),
    undefined,
    'none',
    refused(-32602, 400, 'missing', 'supported'),
  ],
  ['7: header only', request('tools/list'), '2026-07-28', 'none', refused(-32602, 400, 'missing', 'supported')],
  [
    'header only, in a live session',
    request('tools/list'),
    '2026-07-28',
    live('2025-11-25'),
    refused(-32602, 400, 'missing', 'supported'),
  ],
  ['7: header of a draft', request('tools/list'), 'DRAFT-2027', 'none', refused(-32602, 400, 'missing', 'supported')],
  ['8: initialize with a modern header', request('initialize'), '2026-07-28', 'none', refused(-32020)],
  ['9: initialize in full modern dress', request('initialize', MODERN), '2026-07-28', 'none', modern],
  ['10: the handshake', request('initialize'), undefined, 'none', initialize],
  ['10: the handshake with a legacy header', request('initialize'), '2025-06-18', 'none', initialize],
  ['11: the handshake with a session id', request('initialize'), undefined, 'gone', initialize],
  ['11: the handshake in a live session', request('initialize'), '2025-11-25', live('2025-11-25'), initialize],
  ['12: a request in its session', request('tools/list'), undefined, live('2025-03-26'), message],
  ['12: with the header that was negotiated', request('tools/list'), '2025-06-18', live('2025-06-18'), message],
  ['a notification in its session', notification('notifications/initialized'), undefined, live('2025-11-25'), message],
  [
    'with another legacy header',
    request('tools/list'),
    '2025-11-25',
    live('2025-06-18'),
    { ...message, skew: '2025-11-25' },
  ],
  [
    'the same, where that is not forgiven',
    request('tools/list'),
    '2025-11-25',
    live('2025-06-18'),
    refused(-32600),
    { ignoreVersionSkew: false },
  ],
  ['14: a bare server/discover', request('server/discover'), undefined, 'none', { era: 'modern', bare: true }],
  [
    'a bare server/discover, not wanted',
    request('server/discover'),
    undefined,
    'none',
    refused(-32602, 400, 'missing', 'supported'),
    { bareDiscover: false },
  ],
  [
    'a bare server/discover with a legacy header',
    request('server/discover'),
    '2025-11-25',
    'none',
    refused(-32602, 400, 'missing', 'supported'),
  ],
  [
    'a bare subscriptions/listen',
    request('subscriptions/listen'),
    undefined,
    'none',
    refused(-32602, 400, 'missing', 'supported'),
  ],
  ['15: server/discover in a live session', request('server/discover'), undefined, live('2025-11-25'), message],
  ['16: a request without session', request('tools/list'), undefined, 'none', refused(-32600)],
  ['16: ping without session', request('ping'), '2025-11-25', 'none', refused(-32600)],
  ['16: a notification without session', notification('notifications/initialized'), undefined, 'none', refused(-32600)],
  ['17: a session that is gone', request('tools/list'), undefined, 'gone', refused(-32600, 404)],
  ['17: a notification for it', notification('notifications/initialized'), '2025-06-18', 'gone', refused(-32600, 404)],
  ['a header that names no revision', request('tools/list'), '2024-99-99', 'none', refused(-32600, 400, 'supported')],
  ['the same in a live session', request('tools/list'), '1.0', live('2025-11-25'), refused(-32600, 400, 'supported')],
  ['19: a notification with its claim', notification('notifications/cancelled', MODERN), '2026-07-28', 'none', modern],
  [
    'a notification with a claim and no header',
    notification('notifications/cancelled', MODERN),
    undefined,
    'none',
    modern,
  ],
  ['19: a notification with the header alone', notification('notifications/cancelled'), '2026-07-28', 'none', modern],
  [
    'a notification that contradicts its header',
    notification('notifications/cancelled', MODERN),
    '2025-11-25',
    'none',
    refused(-32020),
  ],
  ['20: an answer in a session', RESPONSE, undefined, live('2025-11-25'), message],
  ['21: an answer with a modern header', RESPONSE, '2026-07-28', live('2025-11-25'), refused(-32600)],
  ['21: an answer without session', RESPONSE, undefined, 'none', refused(-32600)],
  ['22: an empty array', '[]', undefined, live('2025-03-26'), refused(-32600)],
  [
    'an array with a modern element',
    `[${request('tools/list', MODERN)}]`,
    undefined,
    live('2025-03-26'),
    refused(-32600),
  ],
  ['an array with a modern header', `[${request('tools/list')}]`, '2026-07-28', live('2025-03-26'), refused(-32600)],
  [
    'an array where there are batches',
    `[${request('tools/list')},${RESPONSE}]`,
    undefined,
    live('2025-03-26'),
    { era: 'legacy', as: 'batch' },
  ],
  ['with the header', `[${request('tools/list')}]`, '2025-03-26', live('2025-03-26'), { era: 'legacy', as: 'batch' }],
  ...(['2025-11-25', '2025-06-18', '2024-11-05'] as const).map(
    (revision): Row => [
      `an array in ${revision}`,
      `[${request('tools/list')}]`,
      undefined,
      live(revision),
      refused(-32600),
    ],
  ),
  ['26: an array with initialize', `[${request('initialize')}]`, undefined, 'none', refused(-32600)],
  ['26: the same in a session', `[${request('initialize')}]`, undefined, live('2025-03-26'), refused(-32600)],
  ['27: an array without session', `[${request('tools/list')}]`, undefined, 'none', refused(-32600)],
  ['27: an array for a session that is gone', `[${request('tools/list')}]`, undefined, 'gone', refused(-32600, 404)],
  ['no message at all', '{"jsonrpc":"2.0"}', undefined, 'none', refused(-32600)],
  [
    'two claims',
    `{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
    '2026-07-28',
    'none',
    refused(-32600),
  ],
  [
    'two _meta',
    `{"jsonrpc":"2.0","id":1,"method":"a","params":{${meta(MODERN)},"_meta":{}}}`,
    '2026-07-28',
    'none',
    refused(-32600),
  ],
]

t.test('classifies messages that are posted to the endpoint', async (t) => {
  for (const [row, body, header, session, expected, compat] of rows) {
    t.same(
      outcome(() => classify(parseText(body), header, session, { ...COMPAT, ...compat })),
      expected,
      row,
    )
  }
})

type Line = [
  name: string,
  line: string,
  session: 'none' | { revision: '2025-11-25' | '2025-03-26' },
  expected: Outcome,
  compat?: Partial<Compat>,
]

const lines: Line[] = [
  ['a modern request', request('tools/list', MODERN), 'none', modern],
  ['a modern request beside a session', request('tools/list', MODERN), { revision: '2025-11-25' }, modern],
  ['another version', request('tools/list', '"2025-11-25"'), 'none', refused(-32022, 400, 'supported', 'requested')],
  ['a version that is no string', request('tools/list', '{}'), 'none', refused(-32602, 400, 'missing', 'supported')],
  ['initialize', request('initialize'), 'none', initialize],
  ['a second initialize', request('initialize'), { revision: '2025-11-25' }, initialize],
  ['a request in the session', request('tools/list'), { revision: '2025-11-25' }, message],
  ['a request before the session', request('tools/list'), 'none', refused(-32600)],
  ['ping before the session', request('ping'), 'none', message],
  ['11.27 a bare server/discover', request('server/discover'), 'none', { era: 'modern', bare: true }],
  [
    'a bare server/discover, where that is not to be answered',
    request('server/discover'),
    'none',
    refused(-32602, 400, 'missing', 'supported'),
    { bareDiscover: false },
  ],
  ['server/discover in the session', request('server/discover'), { revision: '2025-11-25' }, message],
  ['a notification before the session', notification('notifications/initialized'), 'none', message],
  ['an answer before the session', RESPONSE, 'none', message],
  [
    'an array where there are batches',
    `[${request('ping')}]`,
    { revision: '2025-03-26' },
    { era: 'legacy', as: 'batch' },
  ],
  ['an array where there are none', `[${request('ping')}]`, { revision: '2025-11-25' }, refused(-32600)],
  ['an array before the session', `[${request('ping')}]`, 'none', refused(-32600)],
  ['no message at all', '{}', 'none', refused(-32600)],
]

t.test('classifies lines', async (t) => {
  for (const [name, line, session, expected, compat] of lines) {
    t.same(
      outcome(() => classifyLine(parseText(line), session, { ...COMPAT, ...compat })),
      expected,
      name,
    )
  }
})
