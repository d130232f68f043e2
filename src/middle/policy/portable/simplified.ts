/** What portable schemas make of lists of tools: what `mcp-bridge probe` and the inspector say. */
import { BoundedMap } from '../../../base/limits/bounded.js'
import { objectsIn, type Payload, stringUnder } from '../../../base/rpc/splice.js'
import type { Simplified } from '../../../base/texts/simplified.js'
import { formOfTool, nameOf, simplification } from './portable.js'

/** Most tools that are remembered. */
const MAX_SIMPLIFIED = 1_000

/** The tools of a page, as the server lists them, that clients see otherwise. `keepsNames`: except for their names. */
export function simplifiedIn(page: Payload, keepsNames = false): Simplified[] {
  return [...objectsIn(page, 'tools')].flatMap((tool) => {
    const name = stringUnder(tool, 'name') ?? ''
    return simplification(name, keepsNames ? name : nameOf(name), formOfTool(tool)) ?? []
  })
}

/** The tools that clients have seen otherwise in the last lists. */
export class SimplifiedTools {
  readonly #known = new BoundedMap<string, Simplified>(MAX_SIMPLIFIED)

  /** Remembers a tool, or forgets it if clients see it as it is. `key` is its own among all tools. */
  readonly note = (key: string, simplified: Simplified | undefined): void => {
    if (simplified) this.#known.set(key, simplified)
    else this.#known.delete(key)
  }

  get all(): readonly Simplified[] {
    return [...this.#known.values()]
  }
}
