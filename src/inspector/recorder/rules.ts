/** Maps each edit of a message to its rule: the id of a row of docs/development/translation.md, which explains it. */

import { isLeftOut, type RpcError } from '../../base/rpc/message.js'
import type { JsonSource } from '../../base/rpc/source.js'
import { EMPTY, keys, opens, type Payload, raw, write } from '../../base/rpc/splice.js'
import { annotationsOfTool } from '../../mcp/protocol/annotations.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import { KEPT_RESULT } from '../../mcp/protocol/meta.js'
import { ChangeList } from './change-list.js'
import { type Became, changesIn, type Op, Place } from './changes.js'

/** The receiver of a message. */
export type Towards = 'server' | 'modern client' | 'legacy client'

type Form = 'request' | 'notification' | 'result' | 'error'

/** The rule of a change that has no row in the tables. */
export const UNKNOWN = 'unlisted'

type Row = readonly [ops: string, path: RegExp, rule: string]

const META = 'io\\.modelcontextprotocol~1'
const ANY = 'add replace remove'
/** Members of listed tools that the option `tools` of a server changes. */
const REWRITTEN: readonly Row[] = [
  ['add replace', /^\/result\/tools\/\*\/(?:name|title|description)$/, 'rewritten-tools'],
  ['add replace', /^\/result\/tools\/\*\/annotations(?:\/[^/]*)?$/, 'rewritten-tools'],
  ['remove', /^\/result\/tools\/\*\/inputSchema\/(?:properties\/[^/]*|required\/\*)$/, 'rewritten-tools'],
]
/** What the bridge adds for results that it cuts: its tool, and resources of a server that has none. */
const OF_CUT: readonly Row[] = [
  ['replace', /^\/result\/tools$/, 'cut-results'],
  ['add', /^\/result\/capabilities\/resources$/, 'cut-results'],
]
/** What is left of a result that was cut, also in a task. */
const CUT = /^\/(?:result|params)(?:\/result)?\/(?:content|structuredContent)$/
/** Content blocks, or their replacements. */
const CONTENT = /^\/result\/(?:content(?:\/\*(?:\/type)?)?|messages(?:\/\*\/content(?:\/type)?)?|contents)$/
/** Values that get the prefix of their server in a group. */
const OF_GROUPS: readonly Row[] = [['add replace', /\/(?:uri|taskId|logger)$/, 'group-names']]
const EVERY: readonly Row[] = [
  ['replace', /^\/id$/, 'ids'],
  [ANY, /^\/params\/(?:_meta\/)?progressToken$/, 'progress-tokens'],
  [ANY, /^\/params\/_meta\/trace(?:parent|state)$/, 'trace-context'],
]

/**
 * For each receiver, in order: the first matching row applies. A path is that of a change, or the kind of a rebuilt
 * message.
 */
const ROWS: Readonly<Record<Towards, readonly Row[]>> = {
  server: [
    ...EVERY,
    ['replace', /^(?:result|error)$/, 'answers-of-clients'],
    ['replace', /^request server\/discover$/, 'initialize'],
    ['replace', /^request subscriptions\/listen$/, 'subscriptions'],
    ['replace', /^request tools\/call$/, 'tasks-of-servers'],
    ['add', /^\/params(?:\/_meta)?$/, 'added-envelope'],
    ['add replace', new RegExp(`^/params/_meta/${META}(?:protocolVersion|client.*|logLevel)$`), 'added-envelope'],
    ['remove', new RegExp(`^/params/_meta/${META}logLevel$`), 'log-level'],
    ['remove', /^\/params(?:\/_meta(?:\/.*)?)?$/, 'envelope'],
    ['remove', /^\/params\/task$/, 'task-param'],
    ['add replace', /^\/params\/task$/, 'tasks-of-servers'],
    ['remove', /^\/params\/context$/, 'completion-context'],
    ['remove', /^\/params\/(?:inputResponses|requestState)$/, 'retries'],
    ['add replace', /^\/params\/(?:inputResponses|requestState)$/, 'answers-to-input-requests'],
    ['remove', /^\/params\/(?:arguments|reason|total|message)$/, 'absent-members'],
    ['add replace', /^\/params\/(?:name|arguments(?:\/[^/]*)?)$/, 'rewritten-tools'],
    ['replace', /^\/params\/(?:uri|ref\/(?:name|uri))$/, 'exact-names'],
    ['replace remove', /^\/params\/(?:cursor|taskId)$/, 'group-names'],
    ['remove', /^\/params\/notifications\/resourceSubscriptions\/\*$/, 'unusable-tools'],
  ],
  'modern client': [
    ...EVERY,
    ['replace', /^input$/, 'input-requests-of-servers'],
    ['replace', /^task$/, 'tasks-of-servers'],
    ['add replace', /^\/params(?:\/_meta)?$/, 'subscription-ids'],
    ['add replace', new RegExp(`/_meta/${META}subscriptionId$`), 'subscription-ids'],
    ['add replace', /^\/result\/resultType$/, 'result-type'],
    ['add replace', new RegExp(`^/result/_meta(?:/${META}serverInfo)?$`), 'result-type'],
    ['remove', /\/_meta(?:\/.*)?$/, 'protocol-keys'],
    [ANY, /^\/result\/(?:ttlMs|cacheScope)$/, 'cache-hints'],
    ['remove', /^\/result\/nextCursor$/, 'null-cursor'],
    ['remove', /^\/result\/tools\/\*\/execution$/, 'tool-execution'],
    ['remove', /^\/result\/tools\/\*\/inputSchema\/.*x-mcp-header$/, 'header-annotations'],
    [ANY, /^\/result\/tools\/\*\/inputSchema(?:\/(?:type|properties))?$/, 'input-schema-root'],
    ['add', /^\/result\/content$/, 'tool-result-content'],
    ['remove', /^\/result\/toolResult$/, 'tool-result-content'],
    [ANY, CONTENT, 'content-form'],
    ['add replace', /^\/result\/completion\/(?:values|hasMore)$/, 'completion-limit'],
    ...OF_GROUPS,
    ...OF_CUT,
    ...REWRITTEN,
    [ANY, /^\/result\/tools\/\*(?:\/_meta(?:\/.*)?)?$/, 'unusable-tools'],
    [ANY, /^\/error(?:\/.*)?$/, 'errors-for-modern-clients'],
  ],
  'legacy client': [
    ...EVERY,
    ['replace', /^request$/, 'requests-for-input'],
    ['replace', /^result$/, 'initialize'],
    ['add replace', /^\/result\/_meta(?:\/.*)?$/, 'emulated-tasks'],
    ['add replace', /^\/result\/tools\/\*\/execution$/, 'emulated-tasks'],
    ['remove', /^\/result\/(?:resultType|ttlMs|cacheScope)$/, 'modern-members'],
    ['remove', /^\/(?:result|params)\/_meta(?:\/.*)?$/, 'modern-members'],
    ...OF_GROUPS,
    ...OF_CUT,
    ...REWRITTEN,
    ['add replace', /^\/result\/tools\/\*\/_meta(?:\/.*)?$/, 'unusable-tools'],
    ['remove', /^\/result\/tools\/\*\/outputSchema$/, 'output-schemas'],
    ['remove', /^\/result\/structuredContent$/, 'structured-content'],
    ['add', /^\/result\/content$/, 'structured-content'],
    ['remove', /^\/result\/toolResult$/, 'content-form'],
    ['replace', /^\/result\/structuredContent$/, 'structured-content-values'],
    ['add remove', /Schema\/\$schema$/, 'schema-dialect'],
    ['replace', /Schema\/properties\/[^/]*$/, 'boolean-schemas'],
    ['add replace', /^\/result\/tools\/\*\/outputSchema(?:\/.*)?$/, 'output-schema-root'],
    [ANY, /^\/result\/tools\/\*\/inputSchema(?:\/(?:type|required|properties))?$/, 'input-schema-type'],
    ['replace', /\/(?:content\/\*|messages\/\*\/content)$/, 'unknown-content'],
    ['add replace', CONTENT, 'content-form'],
    ['add replace', /^\/result\/completion\/(?:values|hasMore)$/, 'fewer-completions'],
    ['remove', /^\/params\/message$/, 'progress-message'],
    [ANY, /^\/error(?:\/.*)?$/, 'errors-for-legacy-clients'],
    ['remove', /\/\*$/, 'invalid-items'],
    ['remove', /./, 'invalid-members'],
  ],
}

/** Rules that depend on an element of a list, before and after the change. */
const OF_ELEMENTS: readonly {
  rule: string
  fits(path: string, before: Payload, after: Payload | undefined): boolean
}[] = [
  { rule: 'audio-content', fits: (_path, before, after) => isOf(before, 'audio') && isOf(after, 'resource') },
  { rule: 'resource-links', fits: (_path, before, after) => isOf(before, 'resource_link') && isOf(after, 'text') },
  {
    rule: 'misannotated-tools',
    fits: (path, before, after) => path === TOOL && !after && annotationsOfTool(before).misannotated !== undefined,
  },
  {
    rule: 'unusable-tools',
    fits: (path, before, after) => {
      const known = LISTED.exec(path)?.[1] === 'skills' ? 'uri' : 'name'
      return LISTED.test(path) && !after && opens(before, known) === '"'
    },
  },
]
const TOOL = '/result/tools/*'
/** Elements of lists that the bridge may hide. */
const LISTED = /^\/result\/(tools|prompts|resources|resourceTemplates|skills)\/\*$/

function isOf(block: Payload | undefined, type: string): boolean {
  return block !== undefined && raw(block, 'type') === `"${type}"`
}

/** All rules. Each is the id of a row of docs/development/translation.md. */
export const RULES: ReadonlySet<string> = new Set([
  ...Object.values(ROWS).flatMap((rows) => rows.map(([, , rule]) => rule)),
  ...OF_ELEMENTS.map(({ rule }) => rule),
])

/** The empty lists of changes for each receiver, from which all others are made. */
const NONE: Readonly<Record<Towards, ChangeList>> = {
  server: new ChangeList((...change) => ruleOf('server', ...change)),
  'modern client': new ChangeList((...change) => ruleOf('modern client', ...change)),
  'legacy client': new ChangeList((...change) => ruleOf('legacy client', ...change)),
}

/** The same for a result that was cut. */
const NONE_CUT: typeof NONE = {
  server: NONE.server,
  'modern client': new ChangeList((...change) => ruleOfCut('modern client', ...change)),
  'legacy client': new ChangeList((...change) => ruleOfCut('legacy client', ...change)),
}

const MESSAGE = new Place()
const ID = MESSAGE.member('id')
const PARAMS = MESSAGE.member('params')
const RESULT = MESSAGE.member('result')
const ERROR = MESSAGE.member('error')

/**
 * The changes of a message, compared with the received message that it forwards. Undefined if the bridge made the message
 * itself.
 */
export function changesOf(
  form: Form,
  method: string | undefined,
  origin: MessageOrigin | undefined,
  towards: Towards,
): ChangeList | undefined {
  if (origin === undefined) return undefined
  const none = NONE[towards]
  if (origin === 'rebuilt') return rebuilt(form, none)
  const list = withId(form, none)
  if ('code' in origin) return origin.from && inError(origin, origin.from, list)
  if ('text' in origin) return list
  const isParams = form !== 'result'
  const place = isParams ? PARAMS : RESULT
  if (isParams && origin.source === EMPTY.source) return isLeftOut(origin) ? list : list.with('add', place)
  // An object at the beginning of its text is not part of a message: the bridge made it.
  if (origin.start === 0)
    return rebuilt(isParams ? `request ${method}` : (REBUILT[raw(origin, 'resultType') ?? ''] ?? 'own'), none)
  if (isParams && isLeftOut(origin)) return list.with('remove', place)
  return changesIn(origin, place, isCut(origin) ? withId(form, NONE_CUT[towards]) : list)
}

function withId(form: Form, none: ChangeList): ChangeList {
  return form === 'notification' ? none : none.with('replace', ID)
}

/** Whether a result, or that of a task, says how to read what was cut off. */
function isCut({ edits }: Payload): boolean {
  const content = edits?.get('content')
  if (content !== undefined) return (typeof content === 'string' ? content : write(content)).includes(KEPT_RESULT)
  const result = edits?.get('result')
  return typeof result === 'object' && 'table' in result && isCut(result)
}

/** The received text that a message was made from; undefined if unknown. */
export function receivedFor(origin: MessageOrigin | undefined): JsonSource | undefined {
  if (origin === undefined || origin === 'rebuilt') return undefined
  if ('code' in origin) return origin.from?.source
  if ('text' in origin) return origin
  return origin.start === 0 ? undefined : origin.source
}

/** Results that the bridge makes from another form of a server's answer. */
const REBUILT: Readonly<Record<string, string>> = { '"input_required"': 'input', '"task"': 'task' }

/** A message that was rebuilt as a whole. If no row matches, the bridge made it itself. */
function rebuilt(what: string, none: ChangeList): ChangeList | undefined {
  const list = none.with('replace', new Place('', what, undefined, false))
  return list.all[0]?.rule === UNKNOWN ? undefined : list
}

/** Errors are not edited, but rebuilt, so their three members are compared before and after. */
function inError({ code, message, data }: RpcError, from: Payload, list: ChangeList): ChangeList {
  const sent: Readonly<Record<string, string | undefined>> = {
    code: String(code),
    message: JSON.stringify(message),
    data,
  }
  let found = list
  for (const key of new Set([...keys(from), ...Object.keys(sent)])) {
    const before = raw(from, key)
    const after = sent[key]
    if (before === after) continue
    const op = before === undefined ? 'add' : after === undefined ? 'remove' : 'replace'
    found = found.with(op, ERROR.member(key))
  }
  return found
}

function ruleOfCut(towards: Towards, op: Op, path: string, became?: Became): string {
  return CUT.test(path) ? 'cut-results' : ruleOf(towards, op, path, became)
}

function ruleOf(towards: Towards, op: Op, path: string, became?: Became): string {
  const special = became && OF_ELEMENTS.find(({ fits }) => fits(path, became.before, became.after))
  if (special) return special.rule
  return ROWS[towards].find(([ops, pattern]) => ops.includes(op) && pattern.test(path))?.[2] ?? UNKNOWN
}
