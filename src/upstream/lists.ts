/** Remembers what came of the last lists of tools: clients ask for them again and again, and servers change them rarely. */
import type { Loan } from '../protocol/memory.js'
import { cut } from '../rpc/source.js'
import { type Payload, sizeOf } from '../rpc/splice.js'

export type Lift = (method: string, result: Payload) => Payload

/** Characters of all lists that are remembered of one server, as they came; what came of them is as long again. */
const MOST = 1024 * 1024
/** Lists that differ, because the server shows each principal what is for it. */
const LISTS = 8

/** Remembers as much as `loan` has room for. */
export function rememberingLists(lift: Lift, loan: Loan): Lift {
  let known: { text: string; lifted: Payload }[] = []
  return (method, result) => {
    const { source, start, end } = result
    if (method !== 'tools/list' || end - start > MOST) return lift(method, result)
    const text = cut(source, start, end)
    if (text.length > MOST) return lift(method, result)
    const found = known.find((one) => one.text === text)
    if (found) return found.lifted
    const lifted = lift(method, result)
    let room = MOST - text.length
    // The newest first, and of the others as many as there is room for.
    const others = known.slice(0, LISTS - 1).filter((one) => {
      room -= one.text.length
      return room >= 0
    })
    const remembered = [{ text, lifted }, ...others]
    const bytes = remembered.reduce((sum, one) => sum + one.text.length + sizeOf(one.lifted), 0)
    if (loan.hold(bytes) === undefined) known = remembered
    return lifted
  }
}
