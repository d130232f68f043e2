/**
 * What has nothing to do with the wire does not change it: each scenario of the matrix happens once with nothing
 * configured, and once with each option. What clients and servers see is the same, byte for byte. This holds for the pairs
 * whose messages take one way (`PAIRS`); NEUTRAL names others to look at.
 */
import { join } from 'node:path'
import type { Test } from 'tap'
import { guardedConnector } from '../../src/base/net/connect.js'
import { Guard } from '../../src/base/net/guard.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import type { MountTrust } from '../../src/services/discovery/trust/mount-trust.js'
import { Delegate } from '../support/delegate.js'
import { temporaryFolder } from '../support/folder.js'
import { personParts } from '../support/sign-in-parts.js'
import { TokenIssuer } from '../support/token-issuer.js'
import { CLIENTS } from './clients.js'
import type { Recorded } from './recording.js'
import { type Configured, nameOf, runPair } from './run.js'
import { SERVERS } from './servers.js'

/** An option that concerns none of the calls. */
interface Neutral extends Configured {
  /** A method that the bridge itself calls for it. */
  asks?: string
  /** What it is there to change in messages, which is taken out before they are compared. */
  own?: RegExp
  /** The only pairs to look at: others cannot be configured so, or are translated. */
  only?: readonly string[]
}

const BOTH_MODERN = 'modern HTTP client, modern HTTP server'
const BOTH_LEGACY = 'legacy HTTP client, legacy HTTP server'
const OVER_HTTP = [BOTH_MODERN, BOTH_LEGACY, 'modern HTTP client, legacy HTTP server']

const TRUSTED: MountTrust = {
  plan: '',
  connect: guardedConnector({ guard: new Guard({ allowLoopback: true }) }),
  trustStatus: () => ({ state: 'trusted', dependsOnTools: false, reason: '', missing: '', remedy: '' }),
  readOnly: [],
  state: () => ({ open: false, until: 0, reason: '' }),
  required: () => [],
  requiredByAny: () => [],
  heard() {},
  missed() {},
}

/** What clients of several names and capabilities cannot have in one session: that it is theirs. */
const SHARED: Omit<Neutral, 'entry'> = {
  // Whether a tool has to run as a task.
  asks: 'tools/list',
  // Who opens the session, and that tasks of it are offered.
  own: /(?<="clientInfo":)\{[^}]*\}|,"tasks":\{.*?\}{4}/,
  without: [
    ...['opening', 'end', 'log', 'subscribe', 'task'],
    ...['form', 'address', 'sampling', 'roots', 'two', 'rounds', 'decline', 'no answer'],
  ],
}

const OPTIONS: Record<string, (t: Test, pair: string) => Neutral | Promise<Neutral>> = {
  'the audit log': (t) => ({ settings: { audit: { file: join(temporaryFolder(t), 'audit.log') } } }),
  'a limit that is never reached': () => ({
    settings: { limits: { tools: [{ tools: '*', per: 'principal', max: 1_000_000, every: '1h' }] } },
  }),
  'a choice of all tools': () => ({ entry: { tools: ['*'] } }),
  'scopes that require nothing': () => ({ entry: { scopes: { '*': [] } } }),
  'callers of an identity provider': async (t) => {
    const issuer = await TokenIssuer.start(t)
    const auth = { issuers: [{ issuer: issuer.url, audience: HERE }] }
    const authorization = `Bearer ${await issuer.token({ aud: HERE })}`
    return { settings: { publicUrl: HERE, auth }, headers: { authorization } }
  },
  'portable schemas for other clients': () => ({ entry: { schemas: { portable: ['somebody-else'] } } }),
  'no cache': () => ({ entry: { cache: 'off' } }),
  'the cache': () => ({ entry: { cache: 'hints' } }),
  'approval of a tool that nobody calls': (_t, pair) => ({
    entry: { tools: { approve: ['no_such_*'] } },
    asks: 'tools/list',
    // A tool that is not listed may be another spelling of one that is: it is asked for.
    without: pair === BOTH_MODERN ? ['error'] : ['error', 'cancel', 'subscribe', 'changes'],
  }),
  'a limit of results that none exceeds': () => ({
    entry: { results: { cut: '1 MiB' } },
    asks: 'tools/list',
    // A tool is added.
    without: ['lists'],
    own: /,\{"name":"read_more",.*?"openWorldHint":false\}\}/,
  }),
  'a choice that hides nothing there is': () => ({
    entry: { tools: { deny: ['no_such_*'] }, resources: { deny: ['no-such:*'] } },
    asks: 'tools/list',
    only: [BOTH_MODERN],
    // A tool that is not listed, and a method that the bridge does not know, could be something hidden.
    without: ['error', 'unknown'],
  }),
  'scopes of a tool that there is not': () => ({
    entry: { scopes: { 'no_such_*': ['write'] } },
    asks: 'tools/list',
    only: [BOTH_MODERN],
    without: ['error', 'unknown'],
  }),
  'trust in a server that was found': () => ({ context: { lead: () => TRUSTED }, only: [BOTH_MODERN] }),
  'an exchange of tokens for a server that wants none': async (t) => {
    const company = await TokenIssuer.start(t)
    const delegate = await Delegate.start(t, { trusts: [{ issuer: company.url, keys: company.keys }] })
    const client = { clientId: 'bridge', clientSecret: 'CANARY-bridge-secret' }
    const auth = { issuers: [{ issuer: company.url, audience: HERE }] }
    return {
      settings: { publicUrl: HERE, auth },
      entry: { oauth: { grant: 'token-exchange', issuer: delegate.issuer, ...client } },
      context: { signIn: personParts(t, { person: 'none' }).signIn },
      headers: { authorization: `Bearer ${await company.token({ aud: HERE })}` },
      only: OVER_HTTP,
    }
  },
  'one process for all': (_t, pair) => ({
    entry: { process: 'single' },
    only: PAIRS.filter((one) => one !== BOTH_LEGACY),
    ...(pair !== BOTH_MODERN && SHARED),
    // A legacy client that shares a session gets input schemas with a type, because some refuse the whole list for one without.
    ...(pair.startsWith('legacy') && {
      without: [...(SHARED.without ?? []), 'lists'],
      own: new RegExp(`${SHARED.own?.source}|(?<="untyped","inputSchema":\\{"properties":\\{\\}),"type":"object"`),
    }),
  }),
  'a recorder': () => ({ context: { recorder: new EventRecorder(new Ring({ payloads: 'all' }).record) } }),
}

/** Pairs whose ids are the client's, as all other bytes. */
const KEEP_IDS: readonly string[] = [BOTH_MODERN, BOTH_LEGACY]
/** Pairs for which it holds. */
const PAIRS: readonly string[] = [
  ...KEEP_IDS,
  'modern HTTP client, legacy HTTP server',
  'legacy stdio client, legacy stdio server',
  'legacy HTTP client, legacy stdio server',
]

/** One whose messages pass as they are, and one whose messages are translated. The others are slow tests. */
const QUICK: readonly string[] = [BOTH_MODERN, 'modern HTTP client, legacy HTTP server']

const HERE = 'https://mcp.example.com'

interface Difference {
  where: string
  without: string | undefined
  with: string | undefined
}

const only = process.env['NEUTRAL']

/** The tests of the pairs of a kind. */
export function testNeutral(t: Test, kind: 'quick' | 'slow'): void {
  for (const client of CLIENTS)
    for (const server of SERVERS) {
      const pair = `${nameOf(client)} client, ${nameOf(server)} server`
      const isChosen = only === undefined ? PAIRS.includes(pair) : pair.includes(only)
      if (!isChosen || QUICK.includes(pair) !== (kind === 'quick')) continue
      t.test(pair, async (t) => {
        const { recorded: all } = await runPair(t, { client, server })
        for (const [name, configure] of Object.entries(OPTIONS))
          await t.test(name, async (t) => {
            const option = await configure(t, pair)
            if (option.only && !option.only.includes(pair)) return
            const plain = option.without
              ? (await runPair(t, { client, server }, { without: option.without })).recorded
              : all
            const { recorded } = await runPair(t, { client, server }, option)
            const keepsIds = KEEP_IDS.includes(pair)
            const found = differences(plain, recorded, { ...option, keepsIds })
            t.same(found.map(shown), [], 'both wires are as without it')
          })
      })
    }
}

/** Ids of the bridge. A request of its own moves them. */
const ASSIGNED = /"(id|progressToken|requestId|io\.modelcontextprotocol\/subscriptionId)":"?\d+"?/g

function withoutIds(text: string): string {
  return text.replace(ASSIGNED, '"$1":"<id>"')
}

function differences(
  plain: Recorded,
  other: Recorded,
  { keepsIds, asks, own }: Pick<Neutral, 'asks' | 'own'> & { keepsIds: boolean },
): Difference[] {
  const bare = (messages: readonly string[] = []) => (own ? messages.map((text) => text.replace(own, '')) : messages)
  const sent = ({ toServer }: Recorded) => bare(keepsIds ? toServer : toServer.map(withoutIds))
  const isAsked = (difference: Difference) =>
    difference.without === undefined && asks !== undefined && difference.with?.includes(`"method":"${asks}"`) === true
  return [
    ...between('to the server', sent(plain), sent(other)).filter((one) => !isAsked(one)),
    ...Object.entries(plain.toClients).flatMap(([scenario, clients]) =>
      clients.flatMap((streams, index) =>
        Object.entries(streams).flatMap(([stream, messages]) =>
          between(`${scenario}, on ${stream}`, bare(messages), bare(other.toClients[scenario]?.[index]?.[stream])),
        ),
      ),
    ),
  ]
}

/** Messages of one list that the other has not, paired in order. */
function between(where: string, plain: readonly string[], other: readonly string[]): Difference[] {
  const [missing, added] = [rest(plain, other), rest(other, plain)]
  return Array.from({ length: Math.max(missing.length, added.length) }, (_, index) => ({
    where,
    without: missing[index],
    with: added[index],
  }))
}

/** A difference from where two messages begin to differ. */
function shown({ where, without, with: other }: Difference): Difference {
  if (without === undefined || other === undefined) return { where, without: cut(without), with: cut(other) }
  const same = [...without].findIndex((letter, index) => letter !== other[index])
  const from = Math.max(0, (same < 0 ? without.length : same) - 40)
  return { where, without: cut(without, from), with: cut(other, from) }
}

const cut = (text: string | undefined, from = 0) => text?.slice(from, from + 160)

/** What is left of a list of messages without those of the other. */
function rest(messages: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return messages.filter((message) => {
    const at = left.indexOf(message)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
