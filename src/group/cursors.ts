/** Makes and reads the cursors of a group's lists: the server that comes next, and its own cursor. */

import { digest } from '../crypto/digest.js'
import type { SealKey } from '../crypto/seal.js'
import { Fault } from '../fault/fault.js'
import type { Json } from '../rpc/splice.js'
import { Carrier } from './carried.js'
import { activeIn, type GroupPlan, type Member } from './member.js'

export class Cursors {
  readonly #group: string
  readonly #carrier: Carrier

  constructor(group: string, keys: readonly SealKey[]) {
    this.#group = group
    this.#carrier = new Carrier(keys, 'group-cursor')
  }

  /** The cursor for a client. */
  sealed(plan: GroupPlan, method: string, { server }: Member, cursor: Json): Json {
    return this.#carrier.carry({ g: this.#group, v: digestOf(plan), s: server, l: method }, cursor)
  }

  /** The servers that are left for a client's cursor, and the cursor for the first of them. Throws a Fault. */
  opened(
    plan: GroupPlan,
    method: string,
    cursor: Json | undefined,
  ): { left: readonly Member[]; first?: Json | undefined } {
    const members = activeIn(plan)
    if (isFirst(cursor)) return { left: members }
    const carried = this.#carrier.open(cursor)
    const { g, v, s, l } = carried?.fields ?? {}
    const at = members.findIndex(({ server }) => server === s)
    if (!carried || g !== this.#group || v !== digestOf(plan) || l !== method || at < 0) throw wrongCursor()
    return { left: members.slice(at), first: carried.text }
  }
}

/** Whether a cursor stands for the first page. */
export function isFirst(cursor: Json | undefined): cursor is undefined | 'null' {
  return cursor === undefined || cursor === 'null'
}

export function wrongCursor(): Fault {
  return new Fault(
    'invalidParams',
    'params.cursor is not a cursor of this list, or the servers of the group have changed',
  )
}

function digestOf({ members, bareNames, bareUris }: GroupPlan): string {
  const plan = [members.map(({ server, prefix }) => [server, prefix]), bareNames, bareUris]
  return digest(JSON.stringify(plan)).slice(0, 16)
}
