/** Lists the members of protocol objects, and the revisions that have each member. */
import { objectIn, opens, value } from '../../../base/rpc/splice.js'
import type { Feature } from '../eras.js'
import type { Rule, Shape } from './fit.js'

const INSTANT = /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Whether a text is a moment, as clients check it: with seconds and a zone, on a day that the month has. */
function isInstant(text: string): boolean {
  const [, day] = INSTANT.exec(text) ?? []
  const midnight = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(`${day}T`)
}

const any: Rule = {}
const string: Rule = { opens: '"' }
const object: Rule = { opens: '{' }
const list: Rule = { opens: '[' }
const boolean = parsed((value) => typeof value === 'boolean')
const number = parsed((value) => typeof value === 'number')
const integer = parsed(Number.isInteger)
const strings = parsed((value) => Array.isArray(value) && value.every((element) => typeof element === 'string'))

/** A rule that parses the value, which must be small. */
function parsed(is: (value: unknown) => boolean): Rule {
  return { is: (object, key) => is(value(object, key)) }
}

function oneOf(...words: readonly unknown[]): Rule {
  return parsed((value) => words.includes(value))
}

const needed = (rule: Rule): Rule => ({ ...rule, needed: true })
const vital = (rule: Rule): Rule => ({ ...rule, vital: true })
const since = (feature: Feature, rule: Rule): Rule => ({ ...rule, since: feature })
const only = (feature: Feature, rule: Rule): Rule => ({ ...rule, only: feature })
const inner = (shape: Shape): Rule => ({ ...object, inner: shape })
const each = (shape: Shape): Rule => ({ ...list, each: shape })

const meta = since('titles', object)
const title = since('titles', string)

const icon: Shape = {
  src: needed(string),
  mimeType: vital(string),
  sizes: vital(strings),
  theme: vital(oneOf('light', 'dark')),
}
const icons = since('icons', each(icon))

const annotations = inner({
  audience: parsed((value) => Array.isArray(value) && value.every((role) => role === 'user' || role === 'assistant')),
  priority: parsed((value) => typeof value === 'number' && value >= 0 && value <= 1),
  lastModified: since(
    'titles',
    parsed((value) => typeof value === 'string' && isInstant(value)),
  ),
})
const hints = inner({
  title: string,
  readOnlyHint: boolean,
  destructiveHint: boolean,
  idempotentHint: boolean,
  openWorldHint: boolean,
})

export const contents: Shape = { uri: needed(string), mimeType: string, text: string, blob: string, _meta: meta }
const embedded: Rule = {
  ...inner(contents),
  is: (block, key) => {
    const resource = objectIn(block, key)
    if (!resource || opens(resource, 'uri') !== '"') return false
    return opens(resource, 'text') === '"' || opens(resource, 'blob') === '"'
  },
}

const block: Shape = { type: needed(string), annotations, _meta: meta }
export const text: Shape = { ...block, text: needed(string) }
export const media: Shape = { ...block, data: needed(string), mimeType: needed(string) }
export const embeddedResource: Shape = { ...block, resource: needed(embedded) }
export const resource: Shape = {
  uri: needed(string),
  name: needed(string),
  title,
  description: string,
  mimeType: string,
  size: integer,
  annotations,
  icons,
  _meta: meta,
}
export const resourceLink: Shape = { ...block, ...resource }
export const toolUse: Shape = { ...block, id: needed(string), name: needed(string), input: needed(object) }
export const toolResult: Shape = {
  ...block,
  toolUseId: needed(string),
  content: list,
  structuredContent: any,
  isError: boolean,
}

export const resourceTemplate: Shape = {
  uriTemplate: needed(string),
  name: needed(string),
  title,
  description: string,
  mimeType: string,
  annotations,
  icons,
  _meta: meta,
}
export const prompt: Shape = {
  name: needed(string),
  title,
  description: string,
  arguments: each({ name: needed(string), title, description: string, required: boolean }),
  icons,
  _meta: meta,
}
export const tool: Shape = {
  name: needed(string),
  title,
  description: string,
  inputSchema: needed(object),
  outputSchema: only('structuredContent', object),
  annotations: since('toolAnnotations', hints),
  icons,
  _meta: meta,
}

/** As `tool`, with the members of its schemas that clients check. */
export const soundTool: Shape = {
  ...tool,
  inputSchema: needed(inner({ $schema: string, properties: object, required: strings })),
  outputSchema: inner({ $schema: string }),
  execution: inner({ taskSupport: oneOf('forbidden', 'optional', 'required') }),
}

export const implementation: Shape = {
  name: needed(string),
  version: needed(string),
  title,
  description: since('icons', string),
  websiteUrl: since('icons', string),
  icons,
}

const changing = { listChanged: boolean }
export const serverCapabilities: Shape = {
  tools: inner(changing),
  prompts: inner(changing),
  resources: inner({ ...changing, subscribe: boolean }),
  logging: object,
  completions: since('completionsCapability', object),
  tasks: since('tasks', object),
  experimental: object,
  // No legacy revision defines it, but all allow further capabilities.
  extensions: object,
}
export const initializeResult: Shape = { instructions: string, _meta: object }

export const listResult: Shape = { nextCursor: string, _meta: object }
export const callResult: Shape = { content: list, isError: boolean, _meta: object }
export const promptResult: Shape = { description: string, _meta: object }
export const readResult: Shape = { _meta: object }
export const completeResult: Shape = {
  completion: inner({ values: any, total: number, hasMore: boolean }),
  _meta: object,
}

export const progress: Shape = {
  progressToken: any,
  progress: any,
  total: number,
  message: only('progressMessage', string),
  _meta: object,
}
export const listChanged: Shape = { _meta: object }
export const resourceUpdated: Shape = { uri: any, _meta: object }
export const logMessage: Shape = { level: any, logger: string, data: any, _meta: object }

const field: Shape = { type: needed(any), title: string, description: string }
/** Form fields by type. */
export const fields: Readonly<Record<string, Shape>> = {
  string: {
    ...field,
    minLength: number,
    maxLength: number,
    format: oneOf('email', 'uri', 'date', 'date-time'),
    enum: strings,
    enumNames: strings,
    oneOf: list,
    default: only('elicitationDefaults', string),
  },
  number: { ...field, minimum: number, maximum: number, default: only('elicitationDefaults', number) },
  integer: { ...field, minimum: number, maximum: number, default: only('elicitationDefaults', number) },
  boolean: { ...field, default: boolean },
  array: { ...field, items: object, minItems: number, maxItems: number, default: strings },
}
export const form: Shape = {
  mode: only('elicitationModes', string),
  message: any,
  requestedSchema: inner({
    $schema: since('defaultDialect', string),
    type: any,
    properties: any,
    required: strings,
  }),
  _meta: object,
}

export const sampling: Shape = {
  messages: any,
  modelPreferences: inner({
    hints: each({ name: string }),
    costPriority: number,
    speedPriority: number,
    intelligencePriority: number,
  }),
  systemPrompt: string,
  includeContext: oneOf('none', 'thisServer', 'allServers'),
  temperature: number,
  maxTokens: any,
  stopSequences: strings,
  metadata: object,
  tools: only('samplingTools', list),
  toolChoice: only('samplingTools', object),
  _meta: object,
}
export const samplingMessage: Shape = { role: any, content: any, _meta: since('samplingTools', object) }
