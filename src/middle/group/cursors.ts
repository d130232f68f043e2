/** Makes and reads the cursors of a group's lists: the servers that have more, and their own cursors. */

import { digest } from '../../base/crypto/digest.js'
import type { SealKey } from '../../base/crypto/seal.js'
import { TextSealer } from '../../base/crypto/text-sealer.js'
import { Fault } from '../../base/fault/fault.js'
import type { Json } from '../../base/rpc/splice.js'
import { isFirst } from '../../mcp/protocol/listed.js'
import type { ListStart } from './asking.js'
import { activeIn, type GroupPlan } from './member.js'

export class Cursors {
  readonly #group: string
  readonly #sealer: TextSealer

  constructor(group: string, keys: readonly SealKey[]) {
    this.#group = group
    this.#sealer = new TextSealer(keys, 'group-cursor')
  }

  /** The cursor for a client: where the next page goes on, and at which server's cursor. */
  sealed(plan: GroupPlan, method: string, places: readonly ListStart[]): Json {
    const left = places.map(({ member, cursor }) => [
      member.server,
      ...(cursor === undefined ? [] : [JSON.parse(cursor)]),
    ])
    const text = JSON.stringify(JSON.stringify(left))
    return this.#sealer.seal({ g: this.#group, v: digestOf(plan), l: method }, text)
  }

  /** Where the page of a client's cursor begins, in the order of the group. Throws a Fault. */
  opened(plan: GroupPlan, method: string, cursor: Json | undefined): readonly ListStart[] {
    const members = activeIn(plan)
    if (isFirst(cursor)) return members.map((member) => ({ member }))
    const carried = this.#sealer.open(cursor)
    const { g, v, l } = carried?.fields ?? {}
    if (!carried?.text || g !== this.#group || v !== digestOf(plan) || l !== method) throw wrongCursor()
    const left = JSON.parse(JSON.parse(carried.text) as string) as [server: string, cursor?: string][]
    return left.flatMap(([server, theirs]) => {
      const member = members.find((one) => one.server === server)
      return member ? { member, cursor: theirs === undefined ? undefined : JSON.stringify(theirs) } : []
    })
  }
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
