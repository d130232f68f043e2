/** What is wrong with a configuration, place by place. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super(issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'))
    this.issues = issues
  }
}

export interface Issue {
  /** As in `mcpServers.github.url`; empty for the whole. */
  path: string
  message: string
  /** Where it stands, as in `mcp.json:3:5`; absent where it stands in no file. */
  at?: string
}
