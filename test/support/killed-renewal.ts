/** Processes that are killed or stopped while they renew a token, before an authorization server that takes each refresh token once. */
import type { Test } from 'tap'
import type { TokenStore } from '../../src/services/oauth/store/store.js'
import { until } from './eventually.js'
import { SigningProcess } from './processes.js'
import { RedisServer } from './redis.js'
import { type Answer, type AsRequest, ScriptedAs } from './scripted-as.js'
import { sharedRecords } from './shared-records.js'
import { Protected, signingIn } from './signing-in.js'

export const HOUR = 3_600_000
const isRefresh = ({ params }: AsRequest) => params.get('grant_type') === 'refresh_token'

/** An authorization server that takes back the whole grant where a refresh token comes again, `grace` milliseconds after its first use. */
export async function rotating(t: Test, grace: number) {
  const used = new Map<string, number>()
  const seen = { isRevoked: false, again: 0 }
  let nth = 0
  const take = ({ params }: AsRequest): Answer => {
    const token = params.get('refresh_token') ?? ''
    const first = used.get(token)
    if (first !== undefined) seen.again++
    if (first !== undefined && performance.now() - first > grace) seen.isRevoked = true
    if (seen.isRevoked) return [400, { error: 'invalid_grant' }]
    if (first === undefined) used.set(token, performance.now())
    const [access_token, refresh_token] = ['access', 'refresh'].map((kind) => `CANARY-${kind}-renewed-${++nth}`)
    return [200, { access_token, refresh_token, token_type: 'Bearer', expires_in: 7_200 }]
  }
  const as = await ScriptedAs.start(t)
  as.script = { token: (request) => (isRefresh(request) ? take(request) : undefined) }
  return { as, seen, take, refreshes: () => as.of('/token').filter(isRefresh).length }
}

/** Where the records are. */
type Records = 'files' | 'Redis'

/** Somebody who has signed in, and processes for which the token has expired. */
async function signedIn(t: Test, as: ScriptedAs, kind: Records) {
  const server = await Protected.start(t, as.issuer)
  const redis = kind === 'Redis' ? await RedisServer.start(t) : undefined
  const records = redis && (await sharedRecords(redis.url))
  if (records) t.teardown(() => records.close())
  const signing = signingIn(t, { server, ...(records && { store: records.store }) })
  await signing.unauthorized(undefined, server.challenge())
  const common = { url: server.url, folder: signing.folder, challenge: server.challenge(), browser: ['false'] }
  const options = { ...common, ahead: HOUR, ...(redis && { redis: redis.url }) }
  const start = async () => {
    const process = new SigningProcess(t, options)
    await process.ready()
    return process
  }
  return { ...signing, start }
}

const PLACE = '/.well-known/oauth-authorization-server'

/** Where the authorization server stops to answer, and what it has done by then. */
export const STEPS: [step: string, path: string, hasTaken: boolean][] = [
  ['before it shows the refresh token', PLACE, false],
  ['when it has sent the refresh token', '/token', false],
  ['when its refresh token was replaced', '/token', true],
]

/** The process that renews is killed, at some of the steps. */
export function testKilled(t: Test, kind: Records, steps: typeof STEPS): void {
  for (const [step, path, hasTaken] of steps)
    t.test(`the next process renews while it can, where one is killed ${step}`, async (t) => {
      const { as, seen, take, refreshes } = await rotating(t, 10_000)
      const { account, store, start } = await signedIn(t, as, kind)
      const [first, ...others] = await Promise.all([start(), start(), start()])
      let held = 0
      as.hold = (request) => {
        if (request.path !== path || held > 0 || (path === '/token' && !isRefresh(request))) return undefined
        held++
        if (hasTaken) take(request)
        return new Promise<void>(() => {})
      }
      first?.tell('authorization')
      await until(() => held > 0, 'a request of the first process')
      for (const one of others) one.tell('authorization')
      first?.kill()
      await until(() => first?.ended === true)
      const tokens = await Promise.all(others.map((one) => one.outcome('authorization')))
      t.match(tokens[0], /^[0-9a-f]{16}$/)
      t.equal(tokens[1], tokens[0], 'one renewal for all')
      t.same(seen, { isRevoked: false, again: hasTaken ? 1 : 0 })
      t.equal(refreshes(), path === '/token' ? 2 : 1)
      t.match(await store.read(account.key), { token: { access: /renewed/ }, lease: undefined })
    })
}

/** The process that renews is killed after it, or goes on late. */
export function testLate(t: Test, kind: Records): void {
  t.test('no process shows a token again that another one has stored, whenever that is killed', async (t) => {
    const { as, seen } = await rotating(t, 0)
    const { account, store, start } = await signedIn(t, as, kind)
    const [first, ...others] = await Promise.all([start(), start(), start()])
    const before = (await store.read(account.key))?.token?.access
    first?.tell('authorization')
    await until(async () => (await store.read(account.key))?.token?.access !== before, 'a new token')
    first?.kill()
    for (const one of others) one.tell('authorization')
    const tokens = await Promise.all(others.map((one) => one.outcome('authorization')))
    t.match(tokens[0], /^[0-9a-f]{16}$/)
    t.equal(tokens[1], tokens[0])
    t.same(seen, { isRevoked: false, again: 0 })
  })

  t.test('a process that was stopped for long shows no token that another one has used', async (t) => {
    const { as, seen, refreshes } = await rotating(t, 0)
    const { start } = await signedIn(t, as, kind)
    const [slow, other] = await Promise.all([start(), start()])
    let answer: (() => void) | undefined
    as.hold = ({ path }) => {
      if (path !== PLACE || answer) return undefined
      return new Promise<void>((resolve) => {
        answer = resolve
      })
    }
    slow?.tell('authorization')
    await until(() => answer !== undefined, 'a request of the first process')
    slow?.stop()
    other?.tell('authorization')
    const token = await other?.outcome('authorization')
    t.match(token, /^[0-9a-f]{16}$/)
    answer?.()
    slow?.goOn()
    t.equal(await slow?.outcome('authorization'), token)
    t.equal(refreshes(), 1)
    t.same(seen, { isRevoked: false, again: 0 })
  })

  t.test('nobody takes over from a process that lives, however long its renewal takes', async (t) => {
    const { as, seen, refreshes } = await rotating(t, 0)
    const { account, store, start } = await signedIn(t, as, kind)
    const [slow, other] = await Promise.all([start(), start()])
    let answer: (() => void) | undefined
    as.hold = (request) =>
      isRefresh(request)
        ? new Promise<void>((resolve) => {
            answer = resolve
          })
        : undefined
    slow?.tell('authorization')
    await until(() => answer !== undefined, 'a request of the first process')
    other?.tell('authorization')
    await signsOfLife(store, account.key, 15)
    answer?.()
    const token = await slow?.outcome('authorization')
    t.match(token, /^[0-9a-f]{16}$/)
    t.equal(await other?.outcome('authorization'), token)
    t.equal(refreshes(), 1)
    t.same(seen, { isRevoked: false, again: 0 })
  })
}

/** Resolves when the holder of a lease has changed it so many times. */
async function signsOfLife(store: TokenStore, key: string, times: number): Promise<void> {
  const seen = new Set<number>()
  await until(async () => {
    const { lease } = (await store.read(key)) ?? {}
    if (lease) seen.add(lease.until)
    return seen.size > times
  }, 'signs of life')
}
