/** Remembers what came of the last list of tools: clients ask for it again and again, and servers change it rarely. */
import { cut } from '../rpc/source.js'
import type { Payload } from '../rpc/splice.js'

type Lift = (method: string, result: Payload) => Payload

/** Characters of a list that is remembered. */
const MOST = 1024 * 1024

export function rememberingList(lift: Lift): Lift {
  let known: { text: string; lifted: Payload } | undefined
  return (method, result) => {
    const { source, start, end } = result
    if (method !== 'tools/list' || end - start > MOST) return lift(method, result)
    const text = cut(source, start, end)
    if (known?.text !== text) known = { text, lifted: lift(method, result) }
    return known.lifted
  }
}
