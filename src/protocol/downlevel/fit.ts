/**
 * Takes out of objects what a client would reject. Strict clients reject a whole list for one optional member that is null
 * or of the wrong type; without it, they take the list.
 */
import { edit, has, opens, type Payload } from '../../rpc/splice.js'
import { inArray, inObject, keepMembers } from './members.js'
import { type Downlevel, type Feature, speaks } from './target.js'

export interface Rule {
  /** Whether what stands under the key is what it has to be. */
  is(object: Payload, key: string): boolean
  /** Without it the object is worth nothing. */
  needed?: true
  /** The object may lack it, but where it is wrong, the object is worth nothing. */
  vital?: true
  /** What revisions have that have this member. The others ignore it, so that it goes only where that is asked for. */
  since?: Feature
  /** The same, where the others do not ignore it. */
  only?: Feature
  /** The shape of the object that it is. */
  inner?: Shape
  /** The shape of the objects in the list that it is. Those that are worth nothing go. */
  each?: Shape
}

export type Shape = Readonly<Record<string, Rule>>

/**
 * The object without what a client would reject; undefined where too little of it is left. Where it is strict, what the
 * shape or the revision does not have goes as well.
 */
export function fit(object: Payload, shape: Shape, to: Downlevel, strict = to.strict): Payload | undefined {
  const known = (key: string) => Object.hasOwn(shape, key)
  const told = strict ? keepMembers(object, known) : object
  if (told !== object) to.lost('members of other revisions')
  let fitting = told
  for (const [key, rule] of Object.entries(shape)) {
    if (!has(told, key)) {
      if (rule.needed) return undefined
      continue
    }
    const verdict = judge(told, key, rule, to, strict)
    if (verdict === 'worthless') return undefined
    if (verdict === 'stays') {
      fitting = within(fitting, key, rule, to, strict)
      continue
    }
    if (opens(told, key) !== 'n') to.lost(nameOf(told, key, rule))
    fitting = edit(fitting, { [key]: undefined })
  }
  return fitting
}

/** The object without what a client would reject, whatever is left of it; members that the shape does not name stay. */
export function relax(object: Payload, shape: Shape, to: Downlevel): Payload {
  return fit(object, shape, to, false) ?? object
}

function judge(
  object: Payload,
  key: string,
  rule: Rule,
  to: Downlevel,
  strict: boolean,
): 'stays' | 'goes' | 'worthless' {
  if (rule.only && !speaks(to, rule.only)) return 'goes'
  if (rule.since && strict && !speaks(to, rule.since)) return 'goes'
  if (rule.is(object, key)) return 'stays'
  if (rule.needed) return 'worthless'
  return rule.vital && opens(object, key) !== 'n' ? 'worthless' : 'goes'
}

/** What to call a member that goes. */
function nameOf(object: Payload, key: string, rule: Rule): string {
  return (rule.is(object, key) ? (rule.only ?? rule.since) : undefined) ?? key
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
