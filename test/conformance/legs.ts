/** The legs of the conformance run: who is asked by the suite, and what stands behind the bridge. */

export interface Leg {
  name: string
  /** Whose part the bridge has towards the suite; it is the suite's subcommand, too. */
  mode: 'server'
  /** Revision that the suite speaks, and whose requirements it checks. */
  revision: string
  /** The server behind the bridge. */
  server: keyof typeof servers
  /** How the bridge reaches it. */
  transport: 'stdio' | 'http'
  /**
   * Capabilities of modern clients for whom a session is opened beforehand: it takes as long to start a process for it
   * as some checks are ready to wait, which is 600 ms.
   */
  warm: readonly object[]
}

/** The servers behind the bridge, as scripts that take `stdio` or `http`. */
export const servers = {
  legacy: 'test/conformance/legacy-server.ts',
  modern: 'test/conformance/modern-server.ts',
}

const WARM = [{}, { elicitation: {} }]

export const legs: readonly Leg[] = [
  { name: 'stdio', mode: 'server', revision: '2026-07-28', server: 'legacy', transport: 'stdio', warm: WARM },
  { name: 'http', mode: 'server', revision: '2026-07-28', server: 'legacy', transport: 'http', warm: WARM },
]

/** What a leg is known not to pass. */
export function expectedFailures({ name }: Leg): string {
  return `test/conformance/expected-failures/${name}.yml`
}
