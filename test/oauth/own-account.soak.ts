/** Own accounts of several people, interleaved over three replicas, while their tokens are renewed: nobody gets anybody else's. */
import { env } from 'node:process'
import t from 'tap'
import { agree, bearer, whoami } from '../support/asked-to-sign-in.js'
import { Browser } from '../support/browser.js'
import { startCompany } from '../support/company.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

t.setTimeout(3_600_000)

/** As many as auth.md wants; other numbers with `A25_CALLS`. */
const CALLS = Number(env['A25_CALLS'] ?? 100_000)
const AT_ONCE = 32
const PEOPLE = ['alice', 'bob', 'carol', 'dave'] as const
/** Seconds that a token of the server holds: it is renewed all the time. */
const LIFETIME = 5

t.test(
  `${CALLS} calls of ${PEOPLE.length} people at three replicas see only their own accounts`,
  { skip: noRedis },
  async (t) => {
    const redis = await RedisServer.start(t)
    const { url, origin, tokenOf, becomes, server, vendor, bridges } = await startCompany(t, {
      replicas: 3,
      vendor: { lifetime: LIFETIME },
      settings: {
        redis: { url: redis.url, timeout: 30_000 },
        stateKeys: ['a secret that all the replicas know of'],
        log: { level: 'error' },
      },
    })
    const tokens = new Map<string, string>()
    for (const person of PEOPLE) {
      tokens.set(person, await tokenOf(person))
      becomes(person)
      await agree(new Browser(), `${origin}/sign-in/test`)
    }
    const wrong: string[] = []
    let renewals = 0
    let next = 0
    const asking = async () => {
      while (next < CALLS) {
        const nth = next++
        const person = PEOPLE[nth % PEOPLE.length] as string
        const token = tokens.get(person) as string
        const isList = nth % 10 === 0
        const { message, text } = isList
          ? await call(url, 'tools/list', {}, { headers: bearer(token) })
          : await whoami(url, token)
        const { content, tools } = (message.result ?? {}) as {
          content?: { text: string }[]
          tools?: { name: string }[]
        }
        const said = isList ? tools?.at(-1)?.name : content?.[0]?.text
        if (said !== (isList ? `of-${person}` : person)) wrong.push(`${person}: ${text.slice(0, 200)}`)
        for (const { log } of bridges) log.length = 0
        renewals += vendor.grants('refresh_token').length
        vendor.requests.length = 0
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, asking))
    t.same(wrong.slice(0, 5), [])
    t.same(server.mixed, [])
    t.ok(renewals > 0, `${renewals} renewals`)
    for (const person of PEOPLE)
      t.ok((server.calls.get(person) ?? 0) >= CALLS / 6, `${server.calls.get(person)} calls of ${person}`)
  },
)
