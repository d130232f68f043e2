/**
 * The entries of Codex: headers have another name, and some come from variables that Codex must be told to pass on.
 * No side effects.
 */

import type { FileChange } from '../../config/formats/edit.js'
import { isObject } from '../../config/value.js'
import type { Dialect } from './dialects.js'
import type { ClientEntry } from './entry.js'
import { Unfit } from './unfit.js'

/** The members of an entry that name variables. */
const TOKEN = 'bearer_token_env_var'
const HEADERS = 'env_http_headers'
const VARIABLES = 'env_vars'
const BEARER = /^--header=Authorization: Bearer \$\{(\w+)\}$/
const FROM_VARIABLE = /^--header-env=([^=]+)=(?!MCP_BRIDGE_)(\w+)$/

export const CODEX: Dialect = {
  read: ({ http_headers: headers, ...own }) => ({ ...own, ...(headers !== undefined && { headers }) }),
  entry: ({ headers, type: _, ...entry }) => ({ ...entry, ...(headers !== undefined && { http_headers: headers }) }),
  changes: (changes, own) => ({
    within: [],
    changes: [...changes.map((change) => renamed(change, own)), ...removed(changes, own)],
  }),
}

/** Converts headers from variables, in both directions. */
function renamed(change: FileChange, own: ClientEntry): FileChange {
  const key = change.key === 'headers' ? 'http_headers' : change.key
  if ('before' in change) return { ...change, key }
  const by = change.by.map(([one, value]) => [one === 'headers' ? 'http_headers' : one, value] as const)
  if (change.key === 'url' && by.some(([one]) => one === 'args')) return { key, by: withVariables(by, own) }
  return { key, by: by.some(([one]) => one === 'url') ? [...by, ...variablesIn(own)] : by }
}

/** Members that an entry with a command cannot have. */
function removed(changes: readonly FileChange[], own: ClientEntry): FileChange[] {
  const isToProgram = changes.some(({ key }) => key === 'url')
  const isToAddress = changes.some((change) => 'by' in change && change.by.some(([key]) => key === 'url'))
  const keys = isToProgram ? [TOKEN, HEADERS] : isToAddress ? [VARIABLES] : []
  return keys.filter((key) => key in own).map((key) => ({ key, by: [] }))
}

function withVariables(
  by: readonly (readonly [string, unknown])[],
  own: ClientEntry,
): readonly (readonly [string, unknown])[] {
  const { [TOKEN]: token, [HEADERS]: given } = own
  const headers = Object.entries(isObject(given) ? given : {})
  const names = [...(token === undefined ? [] : [token]), ...headers.map(([, name]) => name)]
  if (names.length === 0) return by
  if (!names.every((name) => typeof name === 'string' && /^[A-Za-z_]\w*$/.test(name)))
    throw new Unfit('it names a variable that cannot be one')
  const flags = [
    ...(token === undefined ? [] : [`--header=Authorization: Bearer \${${token}}`]),
    ...headers.map(([name, variable]) => `--header-env=${name}=${variable}`),
  ]
  const words = by.map(
    ([key, value]) => [key, key === 'args' && Array.isArray(value) ? [...value, ...flags] : value] as const,
  )
  return [...words, [VARIABLES, [...new Set(names)]]]
}

/** The members that `withVariables` had converted. */
function variablesIn({ args }: ClientEntry): [key: string, value: unknown][] {
  const words = Array.isArray(args) ? args.map(String) : []
  const token = words.flatMap((word) => BEARER.exec(word)?.[1] ?? []).at(-1)
  const headers = words.flatMap((word) => {
    const [, name, variable] = FROM_VARIABLE.exec(word) ?? []
    return name === undefined ? [] : [[name, variable] as const]
  })
  return [
    ...(token === undefined ? [] : [[TOKEN, token] as [string, unknown]]),
    ...(headers.length === 0 ? [] : [[HEADERS, Object.fromEntries(headers)] as [string, unknown]]),
  ]
}
