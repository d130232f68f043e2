/** The error of an invalid configuration, with the place of each issue. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super(issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'))
    this.issues = issues
  }
}

export interface Issue {
  /** As in `mcpServers.github.url`; empty for the whole configuration. */
  path: string
  message: string
  /** Its place in the file, as in `mcp.json:3:5`; absent if it is not in a file. */
  at?: string
}
