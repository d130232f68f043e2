/** How far a server is trusted at a moment, and what is known of its tools, on which that may depend. */

export interface Standing {
  /** Trusted, at least for some tools; on a short lead; or not to be spoken to at all. */
  state: 'trusted' | 'quarantined' | 'refused'
  /** Globs of the tools that may be called, where the server is trusted for these only. */
  only?: readonly string[] | undefined
  /** It depends on the list of tools, which has to be looked at again from time to time. */
  dependsOnTools: boolean
  /** Why it is so, as a sentence without its full stop. */
  reason: string
  /** What is missing for more, in words; empty where nothing is. */
  missing: string
  /** The command that would allow more; empty where there is none. */
  remedy: string
}

/** A list of tools, as far as trust depends on it. */
export interface ToolList {
  /** The same for lists in which the same tools say the same of themselves, in whatever order. */
  digest: string
  tools: ReadonlyMap<string, ToolFact>
}

export interface ToolFact {
  /** Changes with the description, the schemas and the annotations. */
  digest: string
  /** The hints among its annotations that say yes or no. */
  hints: Readonly<Record<string, boolean>>
}
