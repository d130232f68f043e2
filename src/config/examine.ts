/** Reports all issues of a configuration at once: no mistake hides another one. */
import { parseListen } from './addresses.js'
import { inconsistencies } from './consistency.js'
import { ConfigError, type Issue } from './error.js'
import { type ConfigSources, expand, isExpanded, referenceIn } from './expand.js'
import { withoutServers } from './groups.js'
import { SERVER_KEYS } from './kinds.js'
import { meantBy } from './option-synonyms.js'
import { fileSchema, type Settings } from './schema/schema.js'
import { usualSettings } from './usual.js'
import { isObject, valueUnder } from './value.js'
import { flatten } from './zod-issues.js'

/** The result of examining a configuration. */
export interface ExaminedConfig {
  /** With defaults, and without invalid options and servers. */
  settings: Settings
  issues: readonly Issue[]
  /** Values of references that are valid, and probably mistakes. */
  warnings: readonly Issue[]
}

type Json = Record<string, unknown>

/** Checks a configuration and fills in the defaults. */
export function examine(input: unknown, sources: ConfigSources): ExaminedConfig {
  const { config, issues: shape, under } = shaped(input)
  const { clear, issues: unclear } = withClearEntries(config)
  const { value, issues: references, warnings } = expand(clear, sources, SERVER_KEYS)
  const found = [...unclear, ...references]
  const { settings, invalid } = checked(value)
  // An unresolved reference is the only issue at its place.
  const further = [...invalid, ...addressIssues(settings)].filter(({ path }) => !found.some((one) => one.path === path))
  const all = [...shape, ...found, ...further.map((issue) => ({ ...issue, message: explained(issue, clear, value) }))]
  // Without servers, there is nothing to check.
  const wrong = new Set(all.map(({ path }) => path.split('.')[0] || 'mcpServers'))
  const issues = [...all, ...inconsistencies(settings, wrong)]
  const asGiven = (path: string) => (under === undefined ? path : path.replace(/^mcpServers\b/, () => under))
  const given = (issue: Issue) => ({ ...issue, path: asGiven(issue.path) })
  return { settings, issues: issues.map(given), warnings: warnings.map(given) }
}

/** An IPv6 address that stands for the host of an address without brackets. */
const WITHOUT_BRACKETS = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?[\da-f]*:[\da-f.]*:[\da-f:.]*(?:[/?#]|$)/i

/** The message of an issue, with what is probably meant by values that look right: references and addresses. */
function explained({ path, message }: Issue, written: Json, value: Json): string {
  const [reference, read] = [referenceIn(valueUnder(written, path)), valueUnder(value, path)]
  if (reference !== undefined && !isExpanded(path))
    return `${message.replace(/: .*$/s, '')}, and the reference ${reference} stands for a text: write the value itself`
  if (typeof read === 'string' && WITHOUT_BRACKETS.test(read) && !message.includes(': write '))
    return `${message}: write an IPv6 address in brackets, as in [fd00::1]`
  return message
}

/** Settings without what is invalid, and what is wrong with that. */
function checked(value: Json): { settings: Settings; invalid: readonly Issue[] } {
  const usual = usualSettings(value)
  if (usual) return { settings: usual, invalid: [] }
  // Compiling code for each object of the schema takes longer than checking one configuration without it.
  const { data, error } = fileSchema.safeParse(value, { jitless: true })
  const invalid = (error?.issues ?? []).flatMap((issue) => flatten(issue, [], value))
  return { settings: data ?? parsed(without(value, invalid)), invalid }
}

function parsed(input: Json): Settings {
  return fileSchema.parse(input, { jitless: true })
}

/** A configuration completed with an object of servers, so that the rest can be checked. */
interface Shaped {
  config: Json
  issues: Issue[]
  /** The key used instead of "mcpServers". */
  under?: string
}

const WRAPPED = '{ "mcpServers": { "<name>": … } }'

function shaped(input: unknown): Shaped {
  const wrong = (path: string, message: string, config: Json = {}) => ({ config, issues: [{ path, message }] })
  if (!isObject(input)) return wrong('', `has to be an object with the key "mcpServers": ${WRAPPED}`)
  const { mcpServers, ...rest } = input
  const isFinding = Array.isArray(rest['discover']) && rest['discover'].length > 0
  if (isObject(mcpServers)) {
    if (Object.keys(mcpServers).length > 0 || isFinding) return { config: input, issues: [] }
    return wrong('mcpServers', 'names no server: add one', rest)
  }
  if (mcpServers !== undefined) {
    const found = Array.isArray(mcpServers) ? ', not a list' : ''
    return wrong('mcpServers', `has to be an object of servers by name${found}: ${WRAPPED}`, rest)
  }
  if (isFinding) return { config: input, issues: [] }
  const under = Object.keys(rest).find((key) => isObject(rest[key]) && meantBy(key, ['mcpServers']) !== undefined)
  if (under !== undefined) {
    const { [under]: servers, ...others } = rest
    const issues = [{ path: under, message: 'is not an option: did you mean "mcpServers"?' }]
    return { config: { ...others, mcpServers: servers }, issues, under }
  }
  if (isServer(rest)) return wrong('', `is one server without a name: put it into ${WRAPPED}`)
  if (Object.values(rest).some(isServer)) return wrong('', `has no "mcpServers": put the servers into ${WRAPPED}`)
  return wrong('', `has no "mcpServers", the servers by name: add ${WRAPPED}`, rest)
}

function isServer(entry: unknown): boolean {
  return isObject(entry) && ('command' in entry || 'url' in entry)
}

/**
 * The configuration without disabled servers, where each entry has a definite kind. An entry without one is completed as
 * its apparent kind, so that the rest can be checked.
 */
function withClearEntries(input: Json): { clear: Json; issues: Issue[] } {
  if (!isObject(input['mcpServers'])) return { clear: input, issues: [] }
  const issues: Issue[] = []
  const clear: Json = {}
  for (const [name, entry] of Object.entries(input['mcpServers'])) {
    const path = `mcpServers.${name}`
    if (!isObject(entry)) issues.push({ path, message: notAnObject(entry) })
    else if (!isDisabled(entry)) {
      const { kind, message, meant } = kindOf(entry)
      if (message !== undefined) issues.push({ path, message })
      clear[name] = message === undefined ? entry : asKind(entry, kind, meant)
    }
  }
  const { groups, mcpServers } = input
  const isLeftOut = (name: string) => isDisabled((mcpServers as Json)[name])
  return {
    clear: { ...input, mcpServers: clear, ...(groups !== undefined && { groups: withoutServers(groups, isLeftOut) }) },
    issues,
  }
}

function isDisabled(entry: unknown): boolean {
  return isObject(entry) && entry['disabled'] === true
}

function notAnObject(entry: unknown): string {
  const example = /^[a-z+]+:\/\//i.test(String(entry)) ? '{ "url": "https://…" }' : '{ "command": "…", "args": ["…"] }'
  return `has to be an object: ${example}`
}

interface Kind {
  kind: 'command' | 'url'
  /** The issue of an entry of no kind, or of both. */
  message?: string
  /** The key that was probably intended as the key of its kind. */
  meant?: string | undefined
}

function kindOf(entry: Json): Kind {
  if ('command' in entry && 'url' in entry)
    return { kind: 'url', message: 'has "command" (a program) and "url" (an address): remove one of them' }
  if ('command' in entry) return { kind: 'command' }
  if ('url' in entry) return { kind: 'url' }
  const either = 'has to have either "command" (a program) or "url" (an address)'
  for (const kind of ['command', 'url'] as const) {
    const meant = Object.keys(entry).find((key) => meantBy(key, [kind]) !== undefined)
    if (meant !== undefined) return { kind, meant, message: `${either}. It has "${meant}": did you mean "${kind}"?` }
  }
  const inside = Object.keys(entry).find((key) => isServer(entry[key]))
  const hint = inside === undefined ? '' : `. They are in "${inside}": move them out of it`
  return { kind: 'command', message: `${either}${hint}` }
}

/** An entry completed with the key of its kind, so that the rest can be checked. */
function asKind(entry: Json, kind: Kind['kind'], meant: string | undefined): Json {
  const { command: _command, url: _url, [meant ?? '']: _meant, ...rest } = entry
  return { ...rest, [kind]: kind === 'url' ? 'https://unknown.invalid/' : 'unknown' }
}

/** Addresses on which the bridge cannot listen. */
function addressIssues({ listen, admin }: Settings): readonly Issue[] {
  return Object.entries({ listen, admin }).flatMap(([option, text]) => {
    try {
      if (text !== undefined) parseListen(text, option)
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.issues
      throw error
    }
  })
}

/** A configuration without the options of the bridge and the servers that have issues. */
function without(config: Json, issues: readonly Issue[]): Json {
  const { mcpServers, ...options } = config
  const isWrong = (path: string) => issues.some((issue) => issue.path === path || issue.path.startsWith(`${path}.`))
  const right = (record: Json, prefix: string) =>
    Object.fromEntries(Object.entries(record).filter(([key]) => !isWrong(prefix + key)))
  return {
    ...right(options, ''),
    ...(isObject(mcpServers) && { mcpServers: right(mcpServers, 'mcpServers.') }),
  }
}
