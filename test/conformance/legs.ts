/** The legs of the conformance run: who is asked by the suite, and what stands behind the bridge. */

export type Leg = ServerLeg | ClientLeg | FacadeLeg
export type ServerLeg = SingleLeg | GroupLeg

interface AnyLeg {
  name: string
  /** Whose part the bridge has towards the suite; it is the suite's subcommand, too. */
  mode: 'server' | 'client' | 'authorization'
  /** Revision that the suite speaks, and whose requirements it checks. */
  revision: string
  /** The file that says what the leg is known not to pass, where there is such a thing. */
  expected?: string
}

/** The suite is a client, and the bridge is the server that it asks. */
interface AnyServerLeg extends AnyLeg {
  mode: 'server'
  /**
   * Capabilities of modern clients for whom a session is opened beforehand: it takes as long to start a process for it
   * as some checks are ready to wait, which is 600 ms.
   */
  warm: readonly object[]
  /** The leg of the same server without the bridge: every check that passes there has to pass here. */
  like?: string
}

interface SingleLeg extends AnyServerLeg {
  /** The server behind the bridge. */
  server: keyof typeof servers
  /** How the bridge reaches it; `direct` is without any bridge: the suite asks the server itself. */
  transport: 'stdio' | 'http' | 'direct'
  /** The program that has the bridge in it: by default there is none, and the bridge is the command. */
  within?: 'plugin' | 'fetch'
}
export type Transport = 'stdio' | 'http' | 'sse' | 'direct'

/** A group of servers of all kinds, each of which has a part of everything, with a dead one among them. */
export interface GroupLeg extends AnyServerLeg {
  server: 'group'
  /** Whether names have prefixes. The suite knows none, so `renaming.ts` takes them off between it and the bridge. */
  prefix: 'never' | 'always'
}

/** The suite is a server, and its client is `client.ts`, which speaks through the bridge. */
interface ClientLeg extends AnyLeg {
  mode: 'client'
  /** How the client speaks to the bridge. */
  front: 'stdio' | 'http'
}

/** The suite is a client that signs in at the bridge, which stands before an identity provider. */
interface FacadeLeg extends AnyLeg {
  mode: 'authorization'
}

/** The servers behind the bridge, as scripts that take the transport. */
export const servers = {
  legacy: 'test/conformance/legacy-server.ts',
  modern: 'test/conformance/modern-server.program.ts',
}

/** The servers of a group, in its order. */
export const MEMBERS = [
  { name: 'modern-http', server: 'modern', transport: 'http' },
  { name: 'modern-stdio', server: 'modern', transport: 'stdio' },
  { name: 'legacy-http', server: 'legacy', transport: 'http' },
  { name: 'legacy-stdio', server: 'legacy', transport: 'stdio' },
  { name: 'legacy-sse', server: 'legacy', transport: 'sse' },
] as const

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

/** 2026-07-28 in front of a legacy server. */
const lifted = { mode: 'server', revision: MODERN, server: 'legacy', warm: [{}, { elicitation: {} }] } as const
/** 2025-11-25 in front of a modern server. */
const lowered = { mode: 'server', revision: LEGACY, server: 'modern', warm: [{}] } as const
const modern = { mode: 'server', revision: MODERN, server: 'modern', warm: [{}] } as const
const legacy = { mode: 'server', revision: LEGACY, server: 'legacy', warm: [{}] } as const
const group = { mode: 'server', server: 'group', warm: [{}, { elicitation: {} }, { sampling: {} }] } as const

export const legs: readonly Leg[] = [
  { name: 'stdio', ...lifted, transport: 'stdio', expected: 'stdio' },
  { name: 'http', ...lifted, transport: 'http', expected: 'http' },

  { name: 'plugin', ...lifted, transport: 'stdio', within: 'plugin', expected: 'stdio' },
  { name: 'fetch', ...lifted, transport: 'stdio', within: 'fetch', expected: 'stdio' },

  { name: 'legacy-modern-stdio', ...lowered, transport: 'stdio' },
  { name: 'legacy-modern-http', ...lowered, transport: 'http' },
  { name: 'legacy-plugin', ...lowered, transport: 'stdio', within: 'plugin' },
  { name: 'legacy-fetch', ...lowered, transport: 'stdio', within: 'fetch' },

  { name: 'modern', ...modern, transport: 'direct' },
  { name: 'modern-stdio', ...modern, transport: 'stdio', like: 'modern' },
  { name: 'modern-http', ...modern, transport: 'http', like: 'modern' },

  { name: 'legacy', ...legacy, transport: 'direct' },
  { name: 'legacy-stdio', ...legacy, transport: 'stdio', like: 'legacy' },
  { name: 'legacy-http', ...legacy, transport: 'http', like: 'legacy' },

  { name: 'group', ...group, revision: MODERN, prefix: 'never' },
  { name: 'group-prefixed', ...group, revision: MODERN, prefix: 'always' },
  { name: 'legacy-group', ...group, revision: LEGACY, prefix: 'never' },
  { name: 'legacy-group-prefixed', ...group, revision: LEGACY, prefix: 'always' },

  { name: 'client-modern', mode: 'client', revision: MODERN, front: 'stdio' },
  { name: 'client-modern-http', mode: 'client', revision: MODERN, front: 'http' },
  { name: 'client-legacy', mode: 'client', revision: LEGACY, front: 'stdio' },
  { name: 'client-legacy-http', mode: 'client', revision: LEGACY, front: 'http' },

  { name: 'facade', mode: 'authorization', revision: MODERN, expected: 'facade' },
]

/** What a leg is about, as a heading: legs that are about the same stand side by side. */
export function about(leg: Leg): string {
  if (leg.mode === 'authorization')
    return 'A client that signs in through the bridge, at a provider where clients cannot register'
  if (leg.mode === 'client') return `A legacy client, in front of a server of ${leg.revision}`
  if (leg.server === 'group') return `A client of ${leg.revision}, in front of a group of servers of all kinds`
  return `A client of ${leg.revision}, in front of a ${leg.server} server`
}

/** The suite's list of what a leg is known not to pass. */
export function expectedFailures({ expected = 'none' }: Leg): string {
  return `test/conformance/expected-failures/${expected}.yml`
}

/** The legs of these names, and those that they are compared with. */
export function legsNamed(names: readonly string[]): Leg[] {
  const wanted = new Set(names)
  for (const leg of legs)
    if (leg.mode === 'server' && leg.like !== undefined && wanted.has(leg.name)) wanted.add(leg.like)
  return legs.filter(({ name }) => wanted.has(name))
}
