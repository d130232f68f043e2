/** Hosts start several processes for one server and kill them in the middle: one browser window, and it leads somewhere. */
import t, { type Test } from 'tap'
import { accountKey } from '../../src/services/oauth/client/account.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Oidc } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { type Desktop, desktop, SigningProcess } from '../support/processes.js'
import { Protected } from '../support/signing-in.js'

/** How often a page is reloaded until another process answers, every 100 ms. */
const RELOADS = 1_200
const CHALLENGE = ', scope="mcp:read"'

interface Scene extends Desktop {
  oidc: Oidc
  server: Protected
  start(): Promise<SigningProcess>
  record(): ReturnType<FileStore['read']>
}

const scene = async (t: Test, oidc: Oidc): Promise<Scene> => {
  const server = await Protected.start(t, oidc.issuer)
  const folder = `${temporaryFolder(t)}/tokens`
  const { browser, opened } = await desktop(t)
  const store = new FileStore({ folder })
  const key = accountKey({ endpoint: server.url, account: 'local' }, { grant: 'code' })
  return {
    oidc,
    server,
    browser,
    opened,
    record: () => store.read(key),
    start: async () => {
      const own = new SigningProcess(t, {
        url: server.url,
        folder,
        challenge: server.challenge(CHALLENGE),
        browser,
      })
      await own.ready()
      return own
    },
  }
}

/** A scene of one test, with a first process that has opened a browser and is killed with `kill`. */
async function signingIn(t: Test) {
  const oidc = await Oidc.start(t)
  const { start, ...rest } = await scene(t, oidc)
  const first = await start()
  first.tell('unauthorized')
  await until(() => rest.opened.length > 0, 'a browser was opened')
  const kill = async () => {
    first.kill()
    await until(() => first.ended, 'the end of the process')
  }
  return { ...rest, start, first, kill }
}

const tokenOf = async (one: SigningProcess) => {
  const outcome = await one.outcome('unauthorized')
  return typeof outcome === 'string' ? outcome : JSON.stringify(outcome)
}

t.test('another process finishes a sign-in that a killed process began, with the same window', async (t) => {
  const { oidc, opened, start, record, kill } = await signingIn(t)
  await kill()
  const { pending } = (await record()) ?? {}
  t.ok(pending)
  const second = await start()
  second.tell('unauthorized')
  const { status, callback } = await visit(opened[0] ?? '', { patience: RELOADS })
  t.equal(status, 200)
  t.match(callback?.href, `${pending?.redirectUri}?`)
  t.match(await tokenOf(second), /^[0-9a-f]{16}$/)
  t.equal(opened.length, 1)
  t.equal(oidc.of('/reg').length, 1)
})

t.test('the next process finishes a window that nobody waits for any more', async (t) => {
  const { opened, start, kill } = await signingIn(t)
  await kill()
  const { callback } = await visit(opened[0] ?? '', { back: false })
  const second = await start()
  second.tell('unauthorized')
  await until(async () => (await fetch(callback as URL).catch(() => undefined))?.status === 200, 'the window came back')
  t.match(await tokenOf(second), /^[0-9a-f]{16}$/)
  t.equal(opened.length, 1)
})

t.test('leaves the port of another program alone, and uses another', async (t) => {
  const { opened, start, record, first, kill } = await signingIn(t)
  const port = Number(new URL((await record())?.pending?.redirectUri ?? '').port)
  await visit(opened[0] ?? '')
  await tokenOf(first)
  await kill()
  const { createServer } = await import('node:http')
  const seen: string[] = []
  const stranger = createServer(({ url }, response) => {
    seen.push(url ?? '')
    response.end('somebody else')
  })
  await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve))
  t.teardown(() => stranger.close())
  const next = await start()
  next.tell('logout')
  await next.outcome('logout')
  next.tell('unauthorized')
  await until(() => opened.length > 1, 'a browser was opened again')
  t.not(new URL(new URL(opened[1] ?? '').searchParams.get('redirect_uri') ?? '').port, String(port))
  await visit(opened[1] ?? '')
  t.match(await tokenOf(next), /^[0-9a-f]{16}$/)
  t.same([...new Set(seen)], ['/.well-known/mcp-bridge'], 'a stranger gets to know nothing')
})

t.test('output of the processes has none of the secrets', async (t) => {
  const { oidc, opened, record, first: one } = await signingIn(t)
  const { pending } = (await record()) ?? {}
  const { callback, page } = await visit(opened[0] ?? '')
  await tokenOf(one)
  const { token } = (await record()) ?? {}
  const secrets = [pending?.verifier, token?.access, token?.refresh, ...(callback?.searchParams.values() ?? [])]
  t.equal(secrets.length, 6)
  for (const secret of secrets) {
    t.ok(secret)
    if (secret === oidc.issuer) continue
    t.notOk(JSON.stringify(one.said).includes(secret ?? ''), 'nothing in the log')
    t.notOk(page.includes(secret ?? ''), 'nothing on the page')
  }
})
