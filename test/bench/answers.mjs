/** What the minimal servers answer, built beforehand: next to the proxy they are to cost nothing. */

/** Id, method and name stand in front in all that the bridge and the load generator send. */
const FRONT = /^\{"jsonrpc":"2\.0",(?:"id":(\d+),)?"method":"([^"]+)"(?:,"params":\{"name":"([^"]+)")?/
const MIB = 1024 * 1024

/**
 * @typedef {object} Answer
 * @property {string} front The message up to its result.
 * @property {string} rest
 * @property {Buffer} bytes The rest as bytes.
 * @property {boolean} [streamed] Over HTTP, it is an event of a stream, also without notifications before it.
 */

const SENTENCE =
  'The weather in Reykjavik is fair: 11 degrees, wind from the north-west at 4 m/s, no rain is expected. '
/** With line ends and quotes, as programs write them: all ASCII, but not all of it stands in JSON as it is. */
const LINE = '2026-07-28T12:00:00Z info request "GET /index.html" answered with 200 in 12 ms\n'

/** @param {number} number */
function tool(number) {
  return {
    name: `weather_${number}`,
    title: `Weather service ${number}`,
    description: `Looks up the weather of a place as station ${number} sees it. Answers in one sentence.`,
    inputSchema: {
      type: 'object',
      properties: {
        city: { type: 'string', description: 'Name of the place', minLength: 1 },
        units: { type: 'string', enum: ['metric', 'imperial'], default: 'metric' },
        days: { type: 'integer', minimum: 1, maximum: 14, description: 'How many days to look ahead' },
        include: { type: 'array', items: { type: 'string' } },
      },
      required: ['city'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: true },
  }
}

const SERVER = { name: 'minimal', version: '1.0.0' }
const listed = { tools: Array.from({ length: 20 }, (_, number) => tool(number)) }
const many = { tools: Array.from({ length: 200 }, (_, number) => tool(number)) }
/** What the address of a server ends with whose list has many tools. */
const MANY = '?many'
const small = { content: [{ type: 'text', text: repeated(SENTENCE, 160) }] }
const lines = { content: [{ type: 'text', text: repeated(LINE, MIB) }] }
const image = {
  content: [{ type: 'image', data: repeated('iVBORw0KGgoAAAANSUhEUgAA', MIB), mimeType: 'image/png' }],
}
const uncached = { ttlMs: 0, cacheScope: 'private' }
const unknown = rest('error', { code: -32601, message: 'Method not found' })

/**
 * @typedef {object} Server What a server of an era answers: by method, or by the tool that is called.
 * @property {Readonly<Record<string, Omit<Answer, 'front'>>>} methods
 * @property {Readonly<Record<string, Omit<Answer, 'front'>>>} tools
 */

/** @type {Readonly<Record<'legacy' | 'modern', Server>>} */
const SERVERS = {
  legacy: {
    methods: {
      initialize: rest('result', {
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true } },
        serverInfo: SERVER,
      }),
      'tools/list': rest('result', listed),
      [`tools/list${MANY}`]: rest('result', many),
      'tools/call': rest('result', small),
    },
    tools: { lines: rest('result', lines), event: rest('result', lines), image: rest('result', image) },
  },
  modern: {
    methods: {
      'server/discover': complete({
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: { listChanged: true } },
        ...uncached,
      }),
      'tools/list': complete({ ...listed, ...uncached }),
      [`tools/list${MANY}`]: complete({ ...many, ...uncached }),
      'tools/call': complete(small),
    },
    tools: { lines: complete(lines), event: complete(lines), image: complete(image) },
  },
}

/** How many progress notifications the tool `progress` sends before its answer. */
const STEPS = 10
const TOKEN = /"progressToken":("[^"]*"|\d+)/

/**
 * The answer to a message and the notifications that go before it, or undefined where the message asks nothing.
 *
 * @param {string} text
 * @param {'legacy' | 'modern'} era
 * @param {string} [address] Where a server over HTTP was asked.
 * @returns {Answer & { method: string, id: string, progress: string[] } | undefined}
 */
export function answerTo(text, era, address = '') {
  const [id, method, name] = frontOf(text)
  if (id === undefined) return undefined
  const { methods, tools } = SERVERS[era]
  const asked = method === 'tools/list' && address.endsWith(MANY) ? method + MANY : method
  const { rest, bytes } = tools[name] ?? methods[asked] ?? unknown
  const progress = name === 'progress' ? progressWith(TOKEN.exec(text)?.[1] ?? '0') : []
  return { method, id, front: `{"jsonrpc":"2.0","id":${id},`, rest, bytes, progress, streamed: name === 'event' }
}

/**
 * Id, method and name. The SDKs, which other proxies use, put them elsewhere.
 *
 * @param {string} text
 * @returns {[id: string | undefined, method: string, name: string]}
 */
function frontOf(text) {
  const found = FRONT.exec(text)
  if (found) return [found[1], found[2] ?? '', found[3] ?? '']
  const { id, method = '', params } = JSON.parse(text)
  return [JSON.stringify(id), method, String(params?.name ?? '')]
}

/**
 * @param {string} token In JSON.
 * @returns {string[]}
 */
function progressWith(token) {
  return Array.from({ length: STEPS }, (_, index) => {
    const step = index + 1
    const params = `{"progressToken":${token},"progress":${step},"total":${STEPS},"message":"Station ${step} has answered"}`
    return `{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`
  })
}

/**
 * Agrees to tell when the list of tools changes, which it never does.
 *
 * @param {string} id Of `subscriptions/listen`.
 */
export function acknowledgement(id) {
  const params = `{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}}`
  return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}`
}

/**
 * A result of the modern era.
 *
 * @param {object} value
 */
function complete(value) {
  const _meta = { 'io.modelcontextprotocol/serverInfo': SERVER }
  return rest('result', { resultType: 'complete', ...value, _meta })
}

/**
 * @param {string} pattern
 * @param {number} length
 */
function repeated(pattern, length) {
  return pattern.repeat(Math.ceil(length / pattern.length)).slice(0, length)
}

/**
 * @param {'result' | 'error'} kind
 * @param {object} value
 */
function rest(kind, value) {
  const text = `"${kind}":${JSON.stringify(value)}}`
  return { rest: text, bytes: Buffer.from(text) }
}
