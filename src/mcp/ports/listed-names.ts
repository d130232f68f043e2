/** The names of tools and prompts that servers list: the only ones in metrics and in names of spans. */
import type { Payload } from '../../base/rpc/splice.js'

export interface ListedNames {
  /** Takes a page of a list of the server: the result of `method`. */
  learn(server: string, method: string, page: Payload): void
  /** Whether the server has listed what `method` calls by this name. */
  has(server: string, method: string, name: string): boolean
}
