/**
 * Paths of values in JSON, as lists of names, and patterns of them. A comparison takes at most (names in the pattern) ×
 * (names in the path) steps, because names and patterns are untrusted.
 */
import { nameOfToken } from '../base/rpc/pointer.js'
import { consistsOf } from '../base/texts/fixed-parts.js'

/** Most characters of a compared path. Values at longer paths are hidden. */
export const LONGEST = 2_000

/** Stands for any one name. */
export const ANY = Symbol('any name')
/** Stands for any number of names. */
export const MANY = Symbol('any number of names')

/** A name with wildcards for any characters: the parts between them, at least two. */
interface Parts {
  parts: readonly string[]
}

/** One step of a pattern. */
export type PathStep = string | typeof ANY | typeof MANY | Parts
export type Pattern = readonly PathStep[]

/** The pattern of a glob: a JSON Pointer (RFC 6901) with `*` for one name, or a part of it, and `**` for any number of names. */
export function patternOf(glob: string): Pattern {
  return glob
    .replace(/^\//, '')
    .split('/')
    .map((token): PathStep => {
      if (token === '**') return MANY
      if (token === '*') return ANY
      const parts = nameOfToken(token).split('*')
      return parts.length === 1 ? (parts[0] as string) : { parts }
    })
}

/** Whether the pattern matches the path from `start` on, or a prefix of it. */
export function begins(pattern: Pattern, path: readonly string[], start = 0): boolean {
  let step = 0
  let at = start
  /** The step after the last MANY, and the earliest end of the names it matches. */
  let after = -1
  let resumed = 0
  for (;;) {
    while (pattern[step] === MANY) {
      after = ++step
      resumed = at
    }
    if (step === pattern.length) return true
    const name = path[at]
    if (name !== undefined && fits(pattern[step] as PathStep, name)) {
      step++
      at++
    } else {
      if (after < 0 || resumed >= path.length) return false
      step = after
      at = ++resumed
    }
  }
}

function fits(step: PathStep, name: string): boolean {
  if (typeof step === 'string') return step === name
  return typeof step === 'symbol' || consistsOf(step.parts, name)
}
