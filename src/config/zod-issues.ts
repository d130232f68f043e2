/** Translates issues of zod into the terms of the configuration, with suggestions. */
import type * as z from 'zod'
import type { Issue } from './error.js'
import { example, unitOf } from './hints.js'
import { didYouMean, meantBy } from './option-synonyms.js'
import { keysAt, typeAt } from './reference.js'
import { isObject, valueUnder } from './value.js'

type ZodIssue = z.core.$ZodIssue

/** Translates an issue of zod. For an entry that could be of two kinds, only the issues of its apparent kind count. */
export function flatten(issue: ZodIssue, before: readonly PropertyKey[], input: unknown): Issue[] {
  const path = [...before, ...issue.path].map(String)
  const at = path.join('.')
  const found = valueUnder(input, at)
  const wrong = (message: string) => [{ path: at, message }]
  switch (issue.code) {
    case 'invalid_union': {
      const meant = branchFor(issue.errors, path, found)
      return meant?.flatMap((inner) => flatten(inner, path, input)) ?? wrong(wrongValue(found, path))
    }
    case 'invalid_key':
      return issue.issues.flatMap((inner) => flatten(inner, path, input))
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: [...path, key].join('.'),
        message: `is not an option${didYouMean(key, keysAt(path))}`,
      }))
    case 'invalid_type':
      return wrong(wrongType(issue.expected, found, path))
    case 'invalid_value':
      // The schema may have its own message.
      return wrong(/^Invalid /.test(issue.message) ? wrongChoice(issue.values.map(String), found) : issue.message)
    case 'too_small':
    case 'too_big':
      return wrong(/^Too /.test(issue.message) ? wrongSize(issue) : issue.message)
    case 'custom':
    case 'invalid_element':
    case 'invalid_format':
    case 'not_multiple_of':
      return wrong(issue.message)
  }
}

/** The intended alternative of a value: for an entry, that of its kind; else the one of its type. */
function branchFor(branches: readonly ZodIssue[][], path: readonly string[], found: unknown): ZodIssue[] | undefined {
  const [stdio, http] = branches
  if (path.length === 2 && path[0] === 'mcpServers' && isObject(found)) return 'url' in found ? http : stdio
  const isOfType = (issues: ZodIssue[]) =>
    !issues.some(({ code, path }) => path.length === 0 && (code === 'invalid_type' || code === 'invalid_value'))
  return branches.filter(isOfType).toSorted((a, b) => a.length - b.length)[0]
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

function wrongType(expected: string, found: unknown, path: readonly string[]): string {
  const wanted = `has to be ${KINDS[expected] ?? expected}`
  if (found === undefined) return `is missing, and ${wanted}`
  const { name, is } = kindOf(found)
  if (expected === 'string' && (name === 'number' || name === 'boolean')) {
    const meant = example(path, found)
    return `${wanted}, not ${is}: ${meant ?? 'put it in quotes'}`
  }
  const isNumber = expected === 'number' || expected === 'int'
  if (isNumber && typeof found === 'string') return `${wanted}, not ${is}${numberIn(found, path)}`
  if (expected === 'int') return `${wanted}`
  if (expected === 'boolean' && typeof found === 'string') {
    const meant = { true: true, yes: true, on: true, '1': true, false: false, no: false, off: false, '0': false }
    const value = meant[found.toLowerCase() as keyof typeof meant]
    return `${wanted}, not ${is}${value === undefined ? '' : `: write ${value} without quotes`}`
  }
  const meant = example(path, found)
  return `${wanted}, not ${is}${meant === undefined ? '' : `: ${meant}`}`
}

function kindOf(found: unknown): { name: string; is: string } {
  const name = found === null ? 'null' : Array.isArray(found) ? 'array' : typeof found
  return { name, is: KINDS[name] ?? name }
}

/** The issue of a value of the wrong type. */
function wrongValue(found: unknown, path: readonly string[]): string {
  const type = typeAt(path)
  const { is } = kindOf(found)
  const number = typeof found === 'string' ? numberIn(found, path) : ''
  const meant = example(path, found)
  const hint = number !== '' ? number : meant === undefined ? '' : `: ${meant}`
  return type === undefined ? `cannot be ${is}${hint}` : `has to be ${type}, not ${is}${hint}`
}

/** The suggestion for a number in a string: `30s` in milliseconds, `4MB` in bytes. */
function numberIn(text: string, path: readonly string[]): string {
  const unit = unitOf(path)
  const [, amount, word = ''] = /^(\d+(?:\.\d+)?)(?:\s*([a-z]+))?$/i.exec(text.trim()) ?? []
  if (amount === undefined) return unit === undefined ? '' : `: write the number of ${unit.name}`
  if (word === '') return `: write ${amount} without quotes`
  const factor = unit?.factors[word.toLowerCase()]
  if (factor === undefined) return unit === undefined ? '' : `: write the number of ${unit.name}`
  return `: write ${Math.round(Number(amount) * factor)}, the number of ${unit?.name}`
}

function wrongChoice(values: readonly string[], found: unknown): string {
  const quoted = values.map((value) => JSON.stringify(value))
  const all = quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
  const meant = typeof found === 'string' ? meantBy(found, values) : undefined
  return `has to be ${all}${meant === undefined ? '' : `: did you mean "${meant}"?`}`
}

function wrongSize(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const { origin, inclusive = true } = issue
  const isSmall = issue.code === 'too_small'
  const bound = isSmall ? issue.minimum : issue.maximum
  const isNumber = origin === 'number' || origin === 'int'
  if (isNumber)
    return `has to be ${isSmall ? (inclusive ? 'at least' : 'more than') : inclusive ? 'at most' : 'less than'} ${bound}`
  const unit = origin === 'string' ? 'characters' : 'values'
  return isSmall && bound === 1 ? 'is empty' : `has to have at ${isSmall ? 'least' : 'most'} ${bound} ${unit}`
}
