/** Words with a meaning in the options of servers. */

/** Other programs' names for the transports. */
export const TRANSPORTS: Readonly<Record<string, 'stdio' | 'http' | 'sse'>> = {
  stdio: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  streamable_http: 'http',
  stream: 'http',
  sse: 'sse',
}

/** The key of `scopes` for tools that the server does not mark as read-only. */
export const NOT_READ_ONLY = '!readOnlyHint'
