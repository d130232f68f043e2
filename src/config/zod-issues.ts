/** What zod finds wrong, said place by place in the words of the configuration. */
import type * as z from 'zod'
import { didYouMean } from '../nearest.js'
import type { Issue } from './error.js'
import { keysAt } from './reference.js'
import { isObject, valueUnder } from './value.js'

/** One issue of zod as those of the configuration. An entry that may be of two kinds is taken as the kind that it shows. */
export function flatten(issue: z.core.$ZodIssue, before: readonly PropertyKey[], input: unknown): Issue[] {
  const path = [...before, ...issue.path]
  const at = path.join('.')
  if (issue.code === 'invalid_union') {
    const entry = valueUnder(input, at)
    const [stdio, http] = issue.errors
    const isEntry = path.length === 2 && path[0] === 'mcpServers' && isObject(entry)
    const meant = isEntry ? ('url' in entry ? http : stdio) : issue.errors.toSorted((a, b) => a.length - b.length)[0]
    if (meant && meant.length > 0) return meant.flatMap((inner) => flatten(inner, path, input))
  }
  if (issue.code === 'invalid_key') return issue.issues.flatMap((inner) => flatten(inner, path, input))
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...path, key].join('.'),
      message: `is not an option${didYouMean(key, keysAt(path.map(String)))}`,
    }))
  if (issue.code === 'invalid_type') return [{ path: at, message: wrongType(issue.expected, valueUnder(input, at)) }]
  return [{ path: at, message: issue.message }]
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list (an array)',
  record: 'an object',
  object: 'an object',
}

function wrongType(expected: string, found: unknown): string {
  const wanted = `has to be ${KINDS[expected] ?? expected}`
  if (found === undefined) return `is missing, and ${wanted}`
  const kind = found === null ? 'null' : Array.isArray(found) ? 'array' : typeof found
  const quotes = expected === 'string' && (kind === 'number' || kind === 'boolean') ? ': put it in quotes' : ''
  return `${wanted}, not ${KINDS[kind] ?? kind}${quotes}`
}
