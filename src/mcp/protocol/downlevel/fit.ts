/**
 * Removes members that a client would reject. The zod schemas of @modelcontextprotocol/sdk 1.x, for example, reject a
 * whole list because of one optional member that is null or has the wrong type.
 */
import { edit, opens, type Payload } from '../../../base/rpc/splice.js'
import type { Feature } from '../eras.js'
import { inArray, inObject, keepMembers } from './members.js'
import type { Downlevel } from './target.js'

/** What a member must be, and what happens to an invalid one. */
export interface Rule {
  /** What the value begins with: its kind. By default, any will do. */
  opens?: '"' | '{' | '['
  /** Whether the value under the key is valid, if its kind does not say that. */
  is?(object: Payload, key: string): boolean
  /** Required: an object without a valid one is dropped. */
  needed?: true
  /** Optional, but an object with an invalid one is dropped. */
  vital?: true
  /** The trait of revisions that have this member. Others ignore it, so it is removed only if `strict`. */
  since?: Feature
  /** The trait of revisions that have this member. Others reject it, so it is removed. */
  only?: Feature
  /** The shape of the value, if it is an object. */
  inner?: Shape
  /** The shape of the objects in the value, if it is a list. Invalid ones are dropped. */
  each?: Shape
}

export type Shape = Readonly<Record<string, Rule>>

/**
 * The object without members that a client would reject; undefined if a required member is missing or invalid. With
 * `strict`, also without members that the shape or the revision does not define.
 */
export function fit(object: Payload, shape: Shape, to: Downlevel, strict = to.strict): Payload | undefined {
  const defined = strict ? keepMembers(object, (key) => Object.hasOwn(shape, key)) : object
  if (defined !== object) to.lost('members of other revisions')
  let fitting = defined
  for (const key in shape) {
    const rule = shape[key] as Rule
    const first = opens(defined, key)
    if (first === undefined) {
      if (rule.needed) return undefined
      continue
    }
    const isDefined = !(rule.only && !to.traits[rule.only]) && !(rule.since && strict && !to.traits[rule.since])
    const isValid = (rule.opens ?? first) === first && (rule.is?.(defined, key) ?? true)
    if (isDefined && isValid) {
      if (rule.inner || rule.each) fitting = within(fitting, key, rule, to, strict)
      continue
    }
    // A member that is null counts as absent, unless it is required.
    if (isDefined && (rule.needed || (rule.vital && first !== 'n'))) return undefined
    if (first !== 'n') to.lost((isValid ? (rule.only ?? rule.since) : undefined) ?? key)
    fitting = edit(fitting, { [key]: undefined })
  }
  return fitting
}

/** As `fit`, but never drops the object, and keeps members that the shape does not name. */
export function relax(object: Payload, shape: Shape, to: Downlevel): Payload {
  return fit(object, shape, to, false) ?? object
}

function within(object: Payload, key: string, { inner, each }: Rule, to: Downlevel, strict: boolean): Payload {
  if (inner) return inObject(object, key, (one) => fit(one, inner, to, strict) ?? one)
  if (!each) return object
  const none = () => {
    to.lost(key)
    return []
  }
  return inArray(object, key, (one) => fit(one, each, to, strict) ?? none(), none)
}
