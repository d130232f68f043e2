/** Decides from the configuration which tools or prompts of a server clients see, and under which names. */
import { globs, MAX_MATCHED_NAME } from '../globs.js'

/** Globs of the names at the server. Without `allow`, all are allowed; `deny` wins. */
export interface Rules {
  readonly allow?: readonly string[] | undefined
  readonly deny: readonly string[]
}

export class ChosenNames {
  readonly #allowed: (name: string) => boolean
  readonly #denied: (name: string) => boolean
  readonly #renamed = new Map<string, string>()
  readonly #taken = new Set<string>()

  /** `renamed` maps names at the server to names for clients. */
  constructor({ allow = ['*'], deny }: Rules, renamed: Iterable<readonly [name: string, shown: string]> = []) {
    this.#allowed = globs(allow)
    this.#denied = globs(deny)
    for (const [name, shown] of renamed) {
      this.#renamed.set(name, shown)
      // A configured name belongs to its tool, even if another tool of the server has the same one.
      if (this.#isAllowed(name)) this.#taken.add(shown)
    }
  }

  /** The name for clients of the server's `name`; undefined if it is hidden. */
  shown(name: string): string | undefined {
    if (!this.#isAllowed(name)) return undefined
    return this.#renamed.get(name) ?? (this.#taken.has(name) ? undefined : name)
  }

  /** Globs do not match longer names, so these would pass `deny`. */
  #isAllowed(name: string): boolean {
    return name.length <= MAX_MATCHED_NAME && this.#allowed(name) && !this.#denied(name)
  }
}
