/** What portable schemas make of a tool, as `mcp-bridge probe` and the inspector say it. */

/** Most characters that are shown of what is said of one tool. */
export const MAX_SAID_OF_TOOL = 1_000

/** A tool that clients see otherwise than its server has defined it, or whose schema has no portable form. */
export interface Simplified {
  /** Its name at the server. */
  tool: string
  /** The server, if it is one of a group. */
  server?: string
  /** Its name for clients, if that is another one. */
  shown?: string
  /** What has been simplified in its schema. */
  notes?: readonly string[]
  /** Why its schema stays as it is. */
  why?: string
}

/** How many tools are simplified, and how many keep their schema. */
export function simplifiedTools(all: readonly Simplified[]): string {
  const kept = all.filter(({ why }) => why !== undefined).length
  const said = [
    ...(all.length > kept ? [`${all.length - kept} simplified`] : []),
    ...(kept > 0 ? [`${kept} with the schema of the server`] : []),
  ]
  return said.join(', ')
}

/** What is simplified in a tool, or why its schema stays. */
export function simplifiedTool({ shown, notes = [], why }: Simplified): string {
  const said = [
    ...(shown === undefined ? [] : [`clients call it ${shown}`]),
    ...notes,
    ...(why === undefined ? [] : [`it keeps its schema, because ${why}`]),
  ]
  return said.join('; ') || 'other keywords, which say the same'
}
