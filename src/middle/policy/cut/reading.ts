/** Lets callers read what was cut off results: as a resource, and with a tool for clients that read no resources. */
import { Fault } from '../../../base/fault/fault.js'
import type { Memory } from '../../../base/limits/memory.js'
import { perObject } from '../../../base/rpc/memoize.js'
import {
  arrayIn,
  edit,
  has,
  type Json,
  objectIn,
  objectsIn,
  type Payload,
  parseObject,
  raw,
  write,
} from '../../../base/rpc/splice.js'
import { ECHOED, printable } from '../../../base/texts/printable.js'
import {
  type Call,
  type Final,
  type Handler,
  type Policy,
  type ServerNotification,
  withResult,
} from '../../../mcp/protocol/call.js'
import { isFirst, nextCursor } from '../../../mcp/protocol/listed.js'
import { OF_BRIDGE } from '../../../mcp/protocol/meta.js'
import { CALL_TOOL, LISTEN } from '../../../mcp/protocol/methods.js'
import { ChosenList, type SeenPage } from '../choice/listed.js'
import { refuse } from '../refusal.js'
import { stringIn } from '../unambiguous.js'
import { KEPT_MINUTES, type KeptPart, type KeptResults, type NamedPart } from './kept-results.js'
import { hasLinks, howToRead, pointersAfter, READ_MORE } from './pointers.js'

export interface ReadingOptions {
  /** The name of the server or group. */
  server: string
  /** Whether results are cut. */
  isOn(): boolean
  kept: KeptResults
  memory: Memory
}

/** The name of the tool where a server has one of that name. */
const OTHER_NAME = `mcp_bridge_${READ_MORE}`
const NAMES: ReadonlySet<string> = new Set([READ_MORE, OTHER_NAME])
const EXPIRED = `It is not kept any more: results are kept for ${KEPT_MINUTES} minutes, and later ones can take their place. Call the tool again.`

/** The lists of resources, and the member that each has. */
const RESOURCES: Readonly<Record<string, string>> = {
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}
const METHOD_NOT_FOUND = -32601
const TOOLS_CHANGED = 'notifications/tools/list_changed'
/** Milliseconds after which the tools are looked through again: a server need not say that they have changed. */
const CURRENT = 300_000

/**
 * Adds the tool to lists, and answers the calls for kept results. They are two policies, because a group with a search makes
 * its list itself. In a group, the servers do neither.
 */
export function reading({ server, isOn, kept, memory }: ReadingOptions): { lists: Policy; calls: Policy } {
  /** The tools of the server with a name of the bridge's own. */
  const own = new ChosenList<boolean>({ server, method: 'tools/list', see: withOwnNames, memory, current: CURRENT })
  /** Whether the server has listed a tool with the name of the bridge's own. */
  let isTaken = false
  /** Whether lists have several pages; undefined while that is not known. */
  let isPaged: boolean | undefined
  const concerns = (call: Call) => call.group === undefined && isOn()

  /** Adds the tool to the first page, because some clients read no other. */
  async function listing(call: Call, next: Handler): Promise<Final> {
    const begins = isFirst(raw(call.params, 'cursor'))
    // Another page may have a tool of that name. To be asked before the list: where a session has one stream, the server is not
    // heard while its answer waits. If that fails, no client sees a second tool of that name either.
    if (begins && !isTaken && isPaged !== false)
      isTaken = (await own.find(call, READ_MORE, next).catch(() => undefined)) === true
    const last = await next(call)
    if (last.kind !== 'result') return last
    isTaken ||= hasTool(last.result, READ_MORE)
    if (!begins) return last
    isPaged = isPaged === true || nextCursor(last.result) !== undefined
    return withResult(last, isTaken ? withOtherTool : withTool)
  }

  /** Hears when the tools of the server change. */
  function hearing(call: Call): Call {
    const notify = (notification: ServerNotification) => {
      if (notification.method === TOOLS_CHANGED) own.outdate()
      return call.notify(notification)
    }
    return { ...call, notify }
  }

  /** Clients read no resources of a server that offers none. */
  async function discovering(call: Call, next: Handler): Promise<Final> {
    return withResult(await next(call), (result) => {
      const offered = objectIn(result, 'capabilities')
      if (!offered || has(offered, 'resources')) return result
      return edit(result, { capabilities: edit(offered, { resources: '{}' }) })
    })
  }

  /** A list of resources, which a server that offers none does not know. */
  async function listingResources(call: Call, next: Handler): Promise<Final> {
    const none = parseObject(JSON.stringify({ [RESOURCES[call.method] as string]: [] }))
    const empty: Final = { kind: 'result', result: none, cache: { ttlMs: 0, scope: 'private' } }
    try {
      const last = await next(call)
      return last.kind === 'error' && last.error.code === METHOD_NOT_FOUND ? empty : last
    } catch (error) {
      if (error instanceof Fault && error.fault === 'methodNotFound') return empty
      throw error
    }
  }

  async function resource(call: Call, next: Handler): Promise<Final> {
    const uri = stringIn(call.params, 'uri')
    const named = uri === undefined ? undefined : kept.named(uri)
    if (!named) return next(call)
    const part = await kept.read(call, named)
    if (!part || part === 'foreign') throw unknown(call, uri as string, part)
    return { kind: 'result', result: asResource(part, named, uri as string), cache: { ttlMs: 0, scope: 'private' } }
  }

  async function tool(call: Call, next: Handler): Promise<Final> {
    const name = stringIn(call.params, 'name') as string
    const args = objectIn(call.params, 'arguments')
    const uri = args && stringIn(args, 'uri')
    const named = uri === undefined ? undefined : kept.named(uri)
    // A server may have a tool of this name, which gets what is not for the bridge.
    if (!named && (isTaken || (await own.find(call, name, next)))) return next(call)
    const part = named && (await kept.read(call, named))
    if (named && part && part !== 'foreign') return { kind: 'result', result: asToolResult(part, named, call) }
    if (part === 'foreign') call.foreign?.('foreignResult')
    const isExpired = named !== undefined && part === undefined
    const text = isExpired ? EXPIRED : `${READ_MORE} needs the uri that a cut result names, as it is there.`
    return refuse(call, { reason: 'unknown_result', text })
  }

  const answers: Readonly<Record<string, (call: Call, next: Handler) => Promise<Final>>> = {
    'tools/list': listing,
    'server/discover': discovering,
    ...Object.fromEntries(Object.keys(RESOURCES).map((method) => [method, listingResources])),
  }
  return {
    lists: (next) => (call) => {
      if (call.method === LISTEN && concerns(call)) return next(hearing(call))
      const answer = Object.hasOwn(answers, call.method) ? answers[call.method] : undefined
      return answer && concerns(call) ? answer(call, next) : next(call)
    },
    calls: (next) => (call) => {
      if (call.method === 'resources/read' && concerns(call)) return resource(call, next)
      const isTool = call.method === CALL_TOOL && NAMES.has(stringIn(call.params, 'name') ?? '')
      return isTool && concerns(call) ? tool(call, next) : next(call)
    },
  }
}

function unknown(call: Call, uri: string, part: 'foreign' | undefined): Fault {
  call.log.note({ refused: 'unknown_resource' })
  if (part === 'foreign') call.foreign?.('foreignResult')
  const data = uri.length > ECHOED ? {} : { uri }
  const why = part === 'foreign' ? '' : `. ${EXPIRED}`
  return new Fault('invalidParams', `Resource not found: ${printable(uri, ECHOED)}${why}`, { data })
}

function contentOf({ kind, mimeType, text }: KeptPart, uri: string): object {
  const isText = kind === 'text' || kind === 'structured'
  return isText ? { uri, mimeType, text } : { uri, mimeType, blob: text }
}

/** The part as a resource. A further content says where the next part is. */
function asResource(part: KeptPart, { base }: NamedPart, uri: string): Payload {
  const { number, of } = part
  const content = contentOf(part, uri)
  if (number >= of) return parseObject(JSON.stringify({ contents: [content] }))
  const next = `${base}/${number + 1}`
  const more = { uri: next, mimeType: 'text/plain', text: howToRead(next, number + 1, of) }
  const meta = { [`${OF_BRIDGE}next`]: next }
  return parseObject(JSON.stringify({ contents: [{ ...content, _meta: meta }, more] }))
}

/** The part as the result of the tool. */
function asToolResult(part: KeptPart, { base }: NamedPart, call: Call): Payload {
  const { kind, mimeType, text, number, of } = part
  const block =
    kind === 'image' || kind === 'audio'
      ? { type: kind, mimeType, data: text }
      : kind === 'resource'
        ? { type: kind, resource: contentOf(part, `${base}/${number}`) }
        : { type: 'text', text }
  const blocks = [JSON.stringify(block), ...pointersAfter(number, of, mimeType, base, hasLinks(call))]
  return parseObject(`{"content":[${blocks.join(',')}]}`)
}

/** A page, of which only tools with a name of the bridge's own are remembered. */
const withOwnNames = perObject((page: Payload): SeenPage<boolean> => {
  const names = [...NAMES].filter((name) => hasTool(page, name))
  return { result: page, items: new Map(names.map((name) => [name, true])) }
})

function hasTool(page: Payload, name: string): boolean {
  return [...objectsIn(page, 'tools')].some((tool) => stringIn(tool, 'name') === name)
}

/** Returns a function that puts the tool at the end of a page. Each page is edited once, however often it is sent. */
const adding = (name: string) =>
  perObject((page: Payload) => {
    const list = arrayIn(page, 'tools')
    if (!list) return page
    const comma = list.elements.length > 0 ? ',' : ''
    return edit(page, { tools: `${write(list).slice(0, -1)}${comma}${definitionOf(name)}]` })
  })

const withTool = adding(READ_MORE)
const withOtherTool = adding(OTHER_NAME)

function definitionOf(name: string): Json {
  const title = 'Read more of a result'
  return JSON.stringify({
    name,
    title,
    description:
      'Returns a further part of the result of another tool that was too long to be returned at once. Such a result says with which uri.',
    inputSchema: {
      type: 'object',
      properties: { uri: { type: 'string', description: 'The uri that the result names' } },
      required: ['uri'],
    },
    annotations: { title, readOnlyHint: true, openWorldHint: false },
  })
}
