/**
 * Short clients of several principals, one after the other and at once, in front of a program that remembers everybody whom it has
 * met, while programs are killed, the bridge is reloaded, and another one takes its place.
 */
import type { Test } from 'tap'
import { type Started, settingsOf, startBridge } from './bridge.js'
import { LegacyClient } from './legacy-client.js'
import { type LegacyStdio, legacyStdio } from './legacy-stdio.js'

type Json = Record<string, unknown>

export const PRINCIPALS = ['alice', 'bob', 'carol', 'dave'] as const
type Who = (typeof PRINCIPALS)[number]

/** Clients of each principal at once, names of clients, and calls of one client. */
const AT_ONCE = 2
const NAMES = ['one', 'two']
/** Visits after which another application comes. The one program that stays is of no use to it. */
const VISITS_EACH = 5
const CALLS_EACH = 15
/** Disturbances in all, and the fewest calls between two of them. */
const DISTURBANCES = 20
const LEAST_BETWEEN = 40

const tokenOf = (who: Who) => `token-of-${who}-0123456789`

export interface Takeovers {
  /** Calls that were answered, and those that were not, as when their program was killed. */
  answered: number
  failed: number
  clients: number
  programs: number
  killed: number
  /** What principals got to know of others. */
  crossings: string[]
}

export interface TakeoverOptions {
  calls: number
  /** Options of the entry of the server. */
  entry: object
  /** Milliseconds after which no more clients come. */
  atMost?: number
}

const CALLS = 1_000

/** The test of a lane. */
export function testTakeovers(t: Test, lane: string, entry: object): void {
  t.test(`${lane}: a program that remembers its clients meets those of one principal only`, async (t) => {
    const came = await runTakeovers(t, { calls: CALLS, entry })
    t.comment(JSON.stringify(came))
    t.same(came.crossings, [])
    t.ok(came.answered > CALLS / 2)
    t.ok(came.killed > 0)
    t.ok(came.programs < came.clients / 2, 'most clients have taken a program over')
  })
}

/** Runs so many calls. */
export async function runTakeovers(t: Test, options: TakeoverOptions): Promise<Takeovers> {
  const { calls, entry, atMost = Number.POSITIVE_INFINITY } = options
  const program = legacyStdio(t, { remembers: true })
  const server = { ...program.server, ...entry }
  const auth = { tokens: Object.fromEntries(PRINCIPALS.map((who) => [who, tokenOf(who)])) }
  const settings = { auth, limits: { startsPerMinute: 100_000, processes: 32 } }
  let bridge = await startBridge(t, server, settings)
  const came: Takeovers = { answered: 0, failed: 0, clients: 0, programs: 0, killed: 0, crossings: [] }
  const deadline = performance.now() + atMost
  const made = () => came.answered + came.failed
  const goesOn = () => made() < calls && performance.now() < deadline

  const comesAndGoes = async (who: Who, n: number) => {
    for (let visits = n; goesOn(); visits++)
      await visit(bridge.url, who, NAMES[Math.floor(visits / VISITS_EACH) % NAMES.length] as string, came)
  }
  const disturb = async () => {
    for (let n = 0; goesOn(); n++) {
      const before = made()
      await untilMade(() => made() > before + Math.max(LEAST_BETWEEN, calls / DISTURBANCES) || !goesOn())
      came.killed += kill(program, n)
      if (n % 3 === 1)
        await bridge.bridge.reload(settingsOf({ mcpServers: { test: server }, ...settings, timeouts: reuse(n) }))
      if (n % 9 === 8) bridge = await replaced(t, bridge, server, settings)
    }
  }
  const loops = PRINCIPALS.flatMap((who) => Array.from({ length: AT_ONCE }, (_, n) => comesAndGoes(who, n)))
  await Promise.all([...loops, disturb()])
  came.programs = program.pids().length
  return came
}

const reuse = (n: number) => ({ reuse: 60_000 + n })

/** One client that comes, calls and goes. */
async function visit(url: string, who: Who, name: string, came: Takeovers): Promise<void> {
  came.clients++
  const headers = { authorization: `Bearer ${tokenOf(who)}` }
  try {
    const client = await LegacyClient.open(url, { headers, clientInfo: { name, version: '1' } })
    for (let n = 0; n < CALLS_EACH; n++) {
      const { message, messages } = await client.call('remember', { who })
      const [content] = (message.result?.['content'] ?? []) as { text: string }[]
      if (!content) came.failed++
      else came.answered++
      const logged = messages.flatMap(({ params }) => (params as Json | undefined)?.['data'] ?? []).flat()
      const met = [...(content ? (JSON.parse(content.text) as string[]) : []), ...logged.map(String)]
      for (const other of met) if (other !== who) came.crossings.push(`${who} got a program of ${other}`)
    }
    await client.end()
  } catch {
    // The bridge that it came to has gone.
    came.failed++
  }
}

/** Kills one of the programs that run. */
function kill({ pids }: LegacyStdio, n: number): number {
  const living = pids().filter((pid) => {
    try {
      return process.kill(Number(pid), 0)
    } catch {
      return false
    }
  })
  const pid = living[n % Math.max(1, living.length)]
  if (pid === undefined) return 0
  process.kill(Number(pid), 'SIGKILL')
  return 1
}

/** Another bridge in the place of one. */
async function replaced(t: Test, { bridge }: Started, server: object, settings: object): Promise<Started> {
  const next = await startBridge(t, server, settings)
  await bridge.close()
  return next
}

async function untilMade(isMade: () => boolean): Promise<void> {
  while (!isMade()) await new Promise((resolve) => setTimeout(resolve, 10))
}
