/** Computes what clients see of a server under its configuration, for `probe` and `check`. */
import { Fault } from '../../../base/fault/fault.js'
import { type Payload, value } from '../../../base/rpc/splice.js'
import { LISTS } from '../../../mcp/protocol/methods.js'
import { addresses } from './addresses.js'
import { matcherOf } from './hidden.js'
import { chosenNames, type Rules } from './names.js'
import { renamed, type ToolRules, toolsAsSeen } from './seen.js'

/** What the configuration chooses of a server. */
export interface ServerChoice {
  tools?: ToolRules | undefined
  prompts?: Rules | undefined
  resources?: Rules | undefined
}

type Option = keyof ServerChoice

/** What clients see of what the server lists. */
export interface Left {
  option: Option
  shown: number
  of: number
  /** Patterns, and names in `override`, that match nothing, as in `deny "x_*"`. */
  unmatched: string[]
  /** Tools that are hidden because another tool was renamed to their name. */
  displaced: string[]
  /** Why the server could not list it. */
  error?: string
}

/** Reads all pages of a list. Rejects with a Fault. */
type Read = (method: string, option: Option) => Promise<readonly Payload[]> | readonly Payload[]

/** What clients see of each kind that the configuration restricts. */
export async function leftOf(choice: ServerChoice, read: Read): Promise<Left[]> {
  const left: Left[] = []
  for (const option of ['tools', 'prompts', 'resources'] as const) {
    const rules = choice[option]
    if (!rules) continue
    try {
      left.push(leftBy(option, rules, await namesOf(option, read)))
    } catch (error) {
      left.push({ option, shown: 0, of: 0, unmatched: [], displaced: [], error: Fault.from(error).message })
    }
  }
  return left
}

async function namesOf(option: Option, read: Read): Promise<string[]> {
  const names = new Set<string>()
  for (const [method, { capability, key, id }] of LISTS) {
    if (capability !== option) continue
    for (const page of await read(method, option)) for (const name of namesIn(page, key, id)) names.add(name)
  }
  return [...names]
}

function leftBy(option: Option, rules: AllRules, names: readonly string[]): Left {
  const { isAllowed, isShown } = testsOf(option, rules)
  return {
    option,
    shown: names.filter(isShown).length,
    of: names.length,
    unmatched: unmatched(option, rules, names),
    displaced: names.filter((name) => isAllowed(name) && !isShown(name)),
  }
}

/** Returns a function that gives a page of tools as clients see it. */
export function shownTools({ tools }: ServerChoice): (page: Payload) => Payload {
  const see = tools && toolsAsSeen(tools)
  return (page) => see?.(page).result ?? page
}

/** Tools of `override` that `allow` or `deny` hides. */
export function hiddenOverrides({ tools }: ServerChoice): string[] {
  if (!tools) return []
  const shownName = chosenNames(tools)
  return Object.keys(tools.override).filter((name) => shownName(name) === undefined)
}

type Test = (name: string) => boolean
type AllRules = Rules & { override?: ToolRules['override'] }

function testsOf(option: Option, rules: AllRules): { isAllowed: Test; isShown: Test } {
  if (option === 'resources') {
    const isShown = addresses(rules)
    return { isAllowed: isShown, isShown }
  }
  const [allowed, shown] = [chosenNames(rules), chosenNames(rules, renamed(rules.override ?? {}))]
  return { isAllowed: (name) => allowed(name) !== undefined, isShown: (name) => shown(name) !== undefined }
}

function unmatched(option: Option, rules: AllRules, names: readonly string[]): string[] {
  const patterns = (['allow', 'deny'] as const).flatMap((key) =>
    (rules[key] ?? [])
      .filter((pattern) => !names.some(matcherOf(option === 'resources', key, pattern)))
      .map((pattern) => `${key} "${pattern}"`),
  )
  const overrides = Object.keys(rules.override ?? {}).filter((name) => !names.includes(name))
  return [...patterns, ...overrides.map((name) => `override "${name}"`)]
}

function namesIn(page: Payload, key: string, named: string): string[] {
  const items = value(page, key)
  if (!Array.isArray(items)) return []
  return items.flatMap((item) => {
    const name: unknown = (item as Record<string, unknown> | null)?.[named]
    return typeof name === 'string' ? name : []
  })
}
