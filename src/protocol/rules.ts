/**
 * What the bridge changed in a message, and why: the edits of a message, each with a rule. A rule is the id of a row of
 * docs/translation.md.
 */
import { type Changed, changesIn, type Found } from '../rpc/changes.js'
import { Recent } from '../rpc/memoize.js'
import { type Id, isLeftOut, type RpcError, result } from '../rpc/message.js'
import type { Source, Wire } from '../rpc/source.js'
import { EMPTY, keys, opens, type Payload, raw, wire } from '../rpc/splice.js'
import { annotationsOfTool } from './annotations.js'

/** Whom a message is sent to. */
export type Towards = 'server' | 'modern client' | 'legacy client'

/**
 * What a message was made of: the edited params or result, an error, or the text of a received message that was not
 * edited. The id of a request or an answer is another one in any case. `anew`: it passes on what a message says, in
 * another form.
 */
export type Made = Payload | RpcError | Source | 'anew'

/** An encoded message, and what it was made of. */
export interface Encoded {
  text: Wire
  made: Made
}

/** The answer to a request with this result. */
export function encodedResult(id: Id, made: Payload): Encoded {
  return { text: result(id, wire(made)), made }
}

type Form = 'request' | 'notification' | 'result' | 'error'

/** A change with its rule. */
export interface Change {
  at: string
  op: 'add' | 'remove' | 'replace'
  rule: string
}

/** Maximum number of changes that are listed for one message. `more` counts those beyond. */
export const MAX_CHANGES = 100

/** The rule of a change for which there is none in the tables. */
export const UNKNOWN = 'unlisted'

type Row = readonly [ops: string, path: RegExp, rule: string]

const META = 'io\\.modelcontextprotocol~1'
const ANY = 'add replace remove'
const EVERY: readonly Row[] = [
  ['replace', /^\/id$/, 'ids'],
  [ANY, /^\/params\/(?:_meta\/)?progressToken$/, 'progress-tokens'],
  [ANY, /^\/params\/_meta\/trace(?:parent|state)$/, 'trace-context'],
]

/**
 * For each receiver, in order: the first row that fits counts. A path is that of a change, or what a message became that
 * is made anew.
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
    ['add replace', /^\/result\/content$/, 'tool-result-content'],
    ['remove', /^\/result\/toolResult$/, 'tool-result-content'],
    ['add replace', /^\/result\/completion\/(?:values|hasMore)$/, 'completion-limit'],
    [ANY, /^\/result\/tools\/\*(?:\/(?:title|_meta)(?:\/.*)?)?$/, 'unusable-tools'],
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
    ['add replace', /^\/result\/tools\/\*\/(?:title|_meta)(?:\/.*)?$/, 'unusable-tools'],
    ['remove', /^\/result\/tools\/\*\/outputSchema$/, 'output-schemas'],
    ['remove', /^\/result\/structuredContent$/, 'structured-content'],
    ['add replace', /^\/result\/content$/, 'structured-content'],
    ['replace', /^\/result\/structuredContent$/, 'structured-content-values'],
    ['add remove', /Schema\/\$schema$/, 'schema-dialect'],
    ['replace', /Schema\/properties\/[^/]*$/, 'boolean-schemas'],
    ['add replace', /^\/result\/tools\/\*\/outputSchema(?:\/.*)?$/, 'output-schema-root'],
    [ANY, /^\/result\/tools\/\*\/inputSchema(?:\/(?:type|required|properties))?$/, 'input-schema-type'],
    ['replace', /\/(?:content\/\*|messages\/\*\/content)$/, 'unknown-content'],
    ['add replace', /^\/result\/completion\/(?:values|hasMore)$/, 'fewer-completions'],
    ['remove', /^\/params\/message$/, 'progress-message'],
    [ANY, /^\/error(?:\/.*)?$/, 'errors-for-legacy-clients'],
    ['remove', /\/\*$/, 'invalid-items'],
    ['remove', /./, 'invalid-members'],
  ],
}

/** Rules that an element of a list decides: what it was, and what it became. */
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
  { rule: 'unusable-tools', fits: (path, before, after) => path === TOOL && !after && opens(before, 'name') === '"' },
]
const TOOL = '/result/tools/*'

function isOf(block: Payload | undefined, type: string): boolean {
  return block !== undefined && raw(block, 'type') === `"${type}"`
}

/** All rules. Each is the id of a row of docs/translation.md. */
export const RULES: ReadonlySet<string> = new Set([
  ...Object.values(ROWS).flatMap((rows) => rows.map(([, , rule]) => rule)),
  ...OF_ELEMENTS.map(({ rule }) => rule),
])

const known = new Recent<string>({ max: 500 })

/**
 * What the bridge changed in a message, compared with the received message that it passes on. Undefined if it passes on
 * none: the bridge made it.
 */
export function changesOf(
  { form, method }: { form: Form; method: string | undefined },
  made: Made | undefined,
  towards: Towards,
): { changes: Change[]; more: number; source: Source | undefined } | undefined {
  const found = made === undefined ? undefined : foundIn(form, method, made)
  if (!found) return undefined
  const changes = found.changes.map((changed) => ({ at: changed.at, op: changed.op, rule: ruleOf(changed, towards) }))
  // A message that no row says to be made of another one was made by the bridge alone.
  if (changes[0]?.at === '' && changes[0].rule === UNKNOWN) return undefined
  if (form !== 'notification' && changes[0]?.at !== '') changes.unshift({ at: '/id', op: 'replace', rule: 'ids' })
  return { changes, more: found.more, source: found.source }
}

/** The changes, and the text of the message that was changed, if it is known. */
type InMessage = Found & { source?: Source | undefined }

const NOTHING: InMessage = { changes: [], more: 0 }

function foundIn(form: Form, method: string | undefined, made: Made): InMessage | undefined {
  if (made === 'anew') return { changes: [{ op: 'replace', at: '', path: form }], more: 0 }
  if ('code' in made) return made.from && { ...inError(made, made.from), source: made.from.source }
  if ('text' in made) return { changes: [], more: 0, source: made }
  const isParams = form !== 'result'
  const at = isParams ? '/params' : '/result'
  if (made.source === EMPTY.source && isParams)
    return isLeftOut(made) ? NOTHING : { changes: [{ op: 'add', at, path: at }], more: 0 }
  const { source } = made
  // An object at the beginning of its text is not part of a message: the bridge made it.
  if (made.start === 0) {
    const path = isParams ? `request ${method}` : (ANEW[raw(made, 'resultType') ?? ''] ?? 'own')
    return { changes: [{ op: 'replace', at: '', path }], more: 0 }
  }
  if (isParams && isLeftOut(made)) return { changes: [{ op: 'remove', at, path: at }], more: 0, source }
  return { ...changesIn(made, at, MAX_CHANGES), source }
}

/** Results that the bridge makes of what a server says in another form. */
const ANEW: Readonly<Record<string, string>> = { '"input_required"': 'input', '"task"': 'task' }

/** Errors are not edited, but written anew: what their three members were, and what they are. */
function inError({ code, message, data }: RpcError, from: Payload): Found {
  const sent: Readonly<Record<string, string | undefined>> = {
    code: String(code),
    message: JSON.stringify(message),
    data,
  }
  const changes: Changed[] = []
  for (const key of new Set([...keys(from), ...Object.keys(sent)])) {
    const before = raw(from, key)
    const after = sent[key]
    const at = `/error/${key}`
    if (before !== after)
      changes.push({ op: before === undefined ? 'add' : after === undefined ? 'remove' : 'replace', at, path: at })
  }
  return { changes: changes.slice(0, MAX_CHANGES), more: Math.max(0, changes.length - MAX_CHANGES) }
}

function ruleOf({ op, path, became }: Changed, towards: Towards): string {
  const special = became && OF_ELEMENTS.find(({ fits }) => fits(path, became.before, became.after))
  if (special) return special.rule
  const key = `${towards} ${op} ${path}`
  let rule = known.get(key)
  if (rule === undefined) {
    rule = ROWS[towards].find(([ops, pattern]) => ops.includes(op) && pattern.test(path))?.[2] ?? UNKNOWN
    known.set(key, rule)
  }
  return rule
}
