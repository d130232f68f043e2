/** How far a server is trusted, and the facts about its tools that this depends on. */

/** How far a server is trusted. */
export interface TrustStatus {
  /** Trusted, at least for some tools; restricted; or not to be contacted at all. */
  state: 'trusted' | 'quarantined' | 'refused'
  /** Globs of the tools that may be called; undefined for all. */
  only?: readonly string[] | undefined
  /** It depends on the list of tools, which must be read again from time to time. */
  dependsOnTools: boolean
  /** Why, as a sentence without a full stop. */
  reason: string
  /** What is missing for more trust, in words; empty if nothing is. */
  missing: string
  /** The command that would allow more; empty if there is none. */
  remedy: string
}

/** A list of tools, reduced to what trust depends on. */
export interface ToolList {
  /** Equal for lists of the same tools with the same descriptions, in any order. */
  digest: string
  tools: ReadonlyMap<string, ToolFact>
  /** When it was asked for, in milliseconds since 1970. Undefined: just now. A decision that is younger is not about it. */
  at?: number | undefined
}

/** The facts about one tool. */
export interface ToolFact {
  /** Changes with the description, the schemas and the annotations. */
  digest: string
  /** The boolean hints in its annotations. */
  hints: Readonly<Record<string, boolean>>
}
