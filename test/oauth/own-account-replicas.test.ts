/** Own accounts with three replicas: any of them starts a sign-in, any finishes it, and all use its token. */

import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { again, agree, bearer, questionIn, whoami } from '../support/asked-to-sign-in.js'
import { Browser } from '../support/browser.js'
import { type Company, type CompanyOptions, startCompany } from '../support/company.js'
import { until } from '../support/eventually.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const PEOPLE = ['alice', 'bob', 'carol'] as const

async function threeReplicas(t: Test, options: CompanyOptions = {}): Promise<Company> {
  const redis = await RedisServer.start(t)
  const shared = { redis: { url: redis.url, timeout: 30_000 }, stateKeys: ['a secret that all the replicas know of'] }
  return startCompany(t, { replicas: 3, ...options, settings: { ...shared, ...options.settings } })
}

/** The SDK's own client of the legacy era. It opens addresses in a browser. */
async function sdkClient(t: Test, url: string, token: string, open: (address: string) => Promise<unknown>) {
  const client = new LegacyClient({ name: 'sdk', version: '1' }, { capabilities: { elicitation: { url: {} } } })
  t.teardown(() => client.close())
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    await open(String((params as { url?: string }).url))
    return { action: 'accept' }
  })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: bearer(token) } }) as Transport,
  )
  return client
}

t.test(
  'any replica asks, any shows the page, any takes the redirect, and all use the token',
  { skip: noRedis },
  async (t) => {
    const { url, tokenOf, becomes, server, vendor, bridges } = await threeReplicas(t)
    const tokens = {} as Record<(typeof PEOPLE)[number], string>
    const replicasWith = (event: string) =>
      bridges.flatMap(({ log }, nth) => log.filter((line) => line['event'] === event).map(() => nth))
    const ways: unknown[] = []
    for (const person of PEOPLE) tokens[person] = await tokenOf(person)
    for (const person of PEOPLE) {
      for (const { log } of bridges) log.length = 0
      const asked = await whoami(url, tokens[person])
      becomes(person)
      t.match(await agree(new Browser(), questionIn(asked).url), { page: /You are signed in/ }, person)
      t.match((await whoami(url, tokens[person], again(asked))).message.result, { content: [{ text: person }] })
      const [[began], [ended]] = [replicasWith('sign_in_started'), replicasWith('signed_in')]
      ways.push(began !== undefined && ended !== undefined && began !== ended)
    }
    t.ok(
      ways.every((one) => one === true),
      'the replica that began it is not the one that finished it',
    )
    const answers = await Promise.all(
      Array.from({ length: 90 }, async (_, nth) => {
        const person = PEOPLE[nth % 3] as (typeof PEOPLE)[number]
        const { message } = await whoami(url, tokens[person])
        const [{ text }] = (message.result as { content: [{ text: string }] }).content
        return text === person
      }),
    )
    t.ok(
      answers.every((one) => one),
      'everybody has their own account, at all replicas',
    )
    t.same(server.mixed, [])
    t.equal(vendor.grants('authorization_code').length, PEOPLE.length)
  },
)

t.test('a link that somebody else opens at one replica is spent at all', { skip: noRedis }, async (t) => {
  const { url, tokenOf, becomes, vendor } = await threeReplicas(t)
  const { url: link } = questionIn(await whoami(url, await tokenOf('alice')))
  becomes('bob')
  t.match(await new Browser().go(link), { status: 403 })
  becomes('alice')
  const own = new Browser()
  for (let replica = 0; replica < 3; replica++)
    t.match(await own.press(await own.go(link), 'Continue'), { status: 400, page: /can be used once/ })
  t.equal(vendor.of('/token').length, 0)
})

t.test('a redirect is taken once, whichever replicas get it', { skip: noRedis }, async (t) => {
  const { origin, becomes, vendor } = await threeReplicas(t)
  becomes('alice')
  const browser = new Browser()
  await agree(browser, `${origin}/sign-in/test`)
  const callback = browser.history.find((address) => address.startsWith(`${origin}/sign-in/callback/`)) ?? ''
  const again = await Promise.all(Array.from({ length: 6 }, () => browser.step(callback)))
  t.same(
    again.map(({ status }) => status),
    Array(6).fill(400),
  )
  t.match(await new Browser().step(callback), { status: 400 })
  t.equal(vendor.grants('authorization_code').length, 1)
})

for (const era of ['legacy', 'modern'] as const)
  t.test(
    `the SDK's legacy client is asked in the middle of its call, before a ${era} server`,
    { skip: noRedis },
    async (t) => {
      const { url, tokenOf, becomes, server } = await threeReplicas(t, { era })
      const token = await tokenOf('alice')
      const opened: string[] = []
      const client = await sdkClient(t, url, token, async (address) => {
        opened.push(address)
        becomes('alice')
        await agree(new Browser(), address)
      })
      let changes = 0
      client.fallbackNotificationHandler = async ({ method }) => {
        if (method === 'notifications/tools/list_changed') changes++
      }
      const { tools } = await client.listTools()
      t.same(
        tools.map(({ name }) => name),
        ['mcp_bridge_sign_in'],
      )
      t.match(await client.callTool({ name: 'mcp_bridge_sign_in', arguments: {} }), {
        content: [{ text: /Signed in/ }],
      })
      t.equal(opened.length, 1)
      await until(() => changes > 0, 'the client hears that the tools have changed')
      t.same(
        (await client.listTools()).tools.map(({ name }) => name),
        ['whoami', 'of-alice'],
      )
      t.match(await client.callTool({ name: 'whoami', arguments: {} }), { content: [{ text: 'alice' }] })
      const bob = await sdkClient(t, url, await tokenOf('bob'), async () => {})
      t.same(
        (await bob.listTools()).tools.map(({ name }) => name),
        ['mcp_bridge_sign_in'],
        'nothing is for anybody else',
      )
      t.same(server.mixed, [])
    },
  )

t.test(
  'at the path of a group, people are asked for the server that wants it, and names have its prefix',
  { skip: noRedis },
  async (t) => {
    const settings = { groups: { all: { servers: ['test'] } } }
    const { origin, tokenOf, becomes } = await threeReplicas(t, { settings })
    const url = `${origin}/all/mcp`
    const token = await tokenOf('alice', url)
    const list = async () => {
      const { message } = await call(url, 'tools/list', {}, { headers: bearer(token) })
      return ((message.result as { tools?: { name: string }[] }).tools ?? []).map(({ name }) => name)
    }
    const [tool = ''] = await list()
    t.match(tool, /mcp_bridge_sign_in$/)
    const prefix = tool.slice(0, -'mcp_bridge_sign_in'.length)
    const params = { name: `${prefix}whoami`, arguments: {} }
    const asked = await whoami(url, token, params)
    t.match(questionIn(asked).url, `${origin}/sign-in/test?t=`)
    becomes('alice')
    t.match(await agree(new Browser(), questionIn(asked).url), { page: /You are signed in/ })
    const answer = await whoami(url, token, again(asked, 'accept', params))
    t.match(answer.message.result, { content: [{ text: 'alice' }] })
    await until(async () => (await list()).includes(`${prefix}of-alice`), 'the tools of the server are in the group')
  },
)
