/**
 * Remembers the translated results of the last lists of tools, because clients request them often and servers change them
 * rarely.
 */
import type { Reservation } from '../base/limits/memory.js'
import { cut } from '../base/rpc/source.js'
import { type Payload, sizeOf } from '../base/rpc/splice.js'

/** Translates a result of a legacy server into the middle form. */
export type Lift = (method: string, result: Payload) => Payload

/**
 * Maximum characters of all remembered lists of one server, as received. The translated lists are about as large again.
 */
const MOST = 1024 * 1024
/** Maximum number of remembered lists. A server may show different tools to different principals. */
const LISTS = 8

/** Returns `lift` with a memory for lists of tools. Remembers as much as `reservation` has room for. */
export function rememberingLists(lift: Lift, reservation: Reservation): Lift {
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
    // Keeps the most recent lists for which there is room.
    const others = known.slice(0, LISTS - 1).filter((one) => {
      room -= one.text.length
      return room >= 0
    })
    const remembered = [{ text, lifted }, ...others]
    const bytes = remembered.reduce((sum, one) => sum + one.text.length + sizeOf(one.lifted), 0)
    if (reservation.resize(bytes) === undefined) known = remembered
    return lifted
  }
}
