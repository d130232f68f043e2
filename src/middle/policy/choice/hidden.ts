/** Says why clients do not see an item that a server lists: what of the configuration hides it. Pure. */
import { MAX_ADDRESS } from '../../../base/limits/constants.js'
import { globs, MAX_MATCHED_NAME } from '../globs.js'
import { addresses } from './addresses.js'
import { chosenNames, type Rules } from './names.js'
import { renamed, type ToolRules } from './seen.js'

/** Rules, and the option that they are in. */
interface ChosenBy {
  option: 'tools' | 'prompts' | 'resources' | 'events'
  rules: Rules & Partial<Pick<ToolRules, 'override'>>
}

/** Returns a function that gives the reason, as a sentence, for a name or URI at the server; undefined if it is visible. */
export function whyHidden({ option, rules }: ChosenBy): (name: string) => string | undefined {
  const isOfUris = option === 'resources'
  const shownName = chosenNames(rules, renamed(rules.override ?? {}))
  const isUriShown = addresses(rules)
  const isVisible = isOfUris ? isUriShown : (name: string) => shownName(name) !== undefined
  const denying = rules.deny.map((pattern) => ({ pattern, matches: matcherOf(isOfUris, 'deny', pattern) }))
  const isReadable = addresses({ deny: [] })
  const { allow } = rules
  const isAllowed = isOfUris ? addresses({ allow, deny: [] }) : globs(allow ?? ['*'])
  const most = isOfUris ? MAX_ADDRESS : MAX_MATCHED_NAME
  return (name) => {
    if (isVisible(name)) return undefined
    if (name.length > most) return `It is longer than the ${most} characters that patterns are compared with.`
    if (isOfUris && !isReadable(name)) return 'Its URI can be read in several ways, so patterns cannot tell what it is.'
    const denied = denying.find(({ matches }) => matches(name))
    if (denied) return `"${option}.deny" of the server has "${denied.pattern}".`
    if (!isAllowed(name)) return `"${option}.allow" of the server does not have it.`
    return isOfUris
      ? `"${option}" of the server decides differently on another reading of its URI.`
      : `"${option}.override" of the server gives its name to another.`
  }
}

/** Returns a function that tells whether a pattern of `allow` or `deny` matches a name, or a URI of a resource. */
export function matcherOf(isOfUris: boolean, key: 'allow' | 'deny', pattern: string): (name: string) => boolean {
  if (!isOfUris) return globs([pattern])
  if (key === 'allow') return addresses({ allow: [pattern], deny: [] })
  const isOther = addresses({ deny: [pattern] })
  return (uri) => !isOther(uri)
}
