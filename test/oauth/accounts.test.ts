/** Accounts by who asks, and what they cost where nobody signs in. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import type { Account } from '../../src/mcp/protocol/account.js'
import { Accounts, type AccountsOptions } from '../../src/services/oauth/client/accounts.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { temporaryFolder } from '../support/folder.js'
import { visit } from '../support/person.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf } from '../support/signing-in.js'

const never = new AbortController().signal

const accountsOf = (t: Test, server: Protected, options: Partial<AccountsOptions> = {}) => {
  const folder = join(temporaryFolder(t), 'tokens')
  const opened: string[] = []
  const accounts = new Accounts({
    server: 'stock',
    url: server.url,
    endpoint: server.url,
    account: 'principal',
    settings: { grant: 'code' },
    store: new FileStore({ folder }),
    person: {
      open: async (address) => {
        opened.push(address)
        visit(address).catch(() => {})
        return true
      },
      show: () => true,
    },
    log: { info: () => {}, warn: () => {} },
    ...options,
  })
  t.teardown(() => accounts.close())
  return { accounts, folder, opened }
}

const accountOf = (accounts: Accounts, principal: string) => accounts.for({ principal }) as Account

const refuse = (account: Account, server: Protected, sent?: string) =>
  account.signIn({ status: 401, challenges: [server.challenge()], sent }, never)

t.test('loads the files that obtain a token on demand', async (t) => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../src/services/oauth/client/accounts.ts', import.meta.url))],
    outdir: temporaryFolder(t),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
    logLevel: 'error',
  })
  const [entry = ''] = Object.keys(metafile.outputs).filter((path) => path.endsWith('accounts.js'))
  const reached = new Set([entry])
  for (const path of reached)
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? [])
      if (kind === 'import-statement') reached.add(next)
  const inputs = [...reached].flatMap((path) => Object.keys(metafile.outputs[path]?.inputs ?? {}))
  t.ok(inputs.some((path) => path.endsWith('services/oauth/client/account.ts')))
  t.same(
    inputs.filter((path) => path.includes('node_modules')),
    [],
    'no package at all',
  )
  t.notOk(inputs.some((path) => /oauth\/client\/(?:obtain|grants|discover|register)|oauth\/person/.test(path)))
  const own = [...reached].flatMap((path) => Object.entries(metafile.outputs[path]?.inputs ?? {}))
  const size = own.reduce((sum, [path, { bytesInOutput }]) => sum + (path.includes('oauth/') ? bytesInOutput : 0), 0)
  t.ok(size < 34_000, `${size} bytes`)
})

t.test('a server without a sign-in costs a look at a missing file', async (t) => {
  const server = await Protected.start(t)
  const { accounts, folder } = accountsOf(t, server)
  const account = accountOf(accounts, 'local')
  t.equal(await account.authorization(never), undefined)
  t.equal(account.authorization(never), undefined, 'and not even a promise')
  t.notOk(existsSync(folder))
  t.same(server.asked, [])
})

t.test('returns a fresh token without a promise', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { accounts, folder } = accountsOf(t, server)
  const header = await refuse(accountOf(accounts, 'local'), server)
  await accountOf(accounts, 'local').authorization(never)
  t.equal(accountOf(accounts, 'local').authorization(never), header)
  const next = accountsOf(t, server, { store: new FileStore({ folder }) }).accounts
  t.equal(await accountOf(next, 'local').authorization(never), header, 'the next process has it from the beginning')
})

t.test('accounts of two principals share nothing', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { accounts } = accountsOf(t, server)
  const header = await refuse(accountOf(accounts, 'local'), server)
  t.equal(await accountOf(accounts, 'alice').authorization(never), undefined)
  t.match(await reasonOf(refuse(accountOf(accounts, 'alice'), server)), { reason: 'sign_in_required' })
  t.equal(await accountOf(accounts, 'local').authorization(never), header)
})

t.test('a service account is signed in to only by a command', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { accounts, opened } = accountsOf(t, server, { account: 'service' })
  t.match(await reasonOf(refuse(accountOf(accounts, 'local'), server)), { reason: 'sign_in_required' })
  t.equal(opened.length, 0)
  await accounts.of('local').login([server.challenge()], never)
  t.match(await accountOf(accounts, 'alice').authorization(never), /^Bearer /)
  t.equal(
    await accountOf(accounts, 'bob').authorization(never),
    await accountOf(accounts, 'alice').authorization(never),
  )
})

t.test('the user of this machine may have several accounts', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const store = new FileStore({ folder: join(temporaryFolder(t), 'tokens') })
  const [work, home] = ['work', 'home'].map((accountName) => accountsOf(t, server, { store, accountName }).accounts)
  const one = await refuse(accountOf(work as Accounts, 'local'), server)
  const other = await refuse(accountOf(home as Accounts, 'local'), server)
  t.not(one, other)
  t.same((await store.list()).map(({ record }) => record?.account).sort(), ['home', 'work'])
})

t.test('a bridge that shuts down closes its callback listeners', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  let address = ''
  const { accounts } = accountsOf(t, server, {
    person: {
      open: async (given) => {
        address = given
        return true
      },
      show: () => true,
    },
  })
  const waiting = reasonOf(refuse(accountOf(accounts, 'local'), server))
  const { until } = await import('../support/eventually.js')
  await until(() => address !== '')
  accounts.close()
  t.match(await waiting, { reason: 'draining' })
  const port = Number(new URL(new URL(address).searchParams.get('redirect_uri') ?? '').port)
  await until(
    async () => !(await fetch(`http://127.0.0.1:${port}/callback`).catch(() => undefined)),
    'the listener went',
  )
})
