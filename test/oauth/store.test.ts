/** Where tokens are kept: in files that nobody else can reach, or not at all. */
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { accountKey } from '../../src/services/oauth/client/account.js'
import { defaultTokenFolder, FileStore } from '../../src/services/oauth/store/files.js'
import { MemoryStore } from '../../src/services/oauth/store/memory.js'
import type { Holder, Token } from '../../src/services/oauth/store/record.js'
import { leaper } from '../support/clock.js'
import { temporaryFolder } from '../support/folder.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf, signingIn } from '../support/signing-in.js'

const holder: Holder = { endpoint: 'https://a.example/mcp', account: 'local' }
const key = accountKey(holder, { grant: 'code' })
const token: Token = { issuer: 'https://as.example', access: 'a', type: 'bearer', asked: [], granted: [], since: 1 }
const never = new AbortController().signal
/** How long an account may go on with the file that it has read, in milliseconds. */
const LOOK_EVERY = 500

const stored = async (t: Test) => {
  const folder = join(temporaryFolder(t), 'mcp-bridge', 'tokens')
  const store = new FileStore({ folder })
  await store.change(key, holder, (record) => {
    record.token = token
  })
  return { folder, store, path: join(folder, `${key}.json`) }
}

t.test('token files have mode 0600, in a folder of 0700', async (t) => {
  const { folder, store, path } = await stored(t)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.same(readdirSync(folder), [`${key}.json`])
  t.match(await store.read(key), { ...holder, token })
  t.match(await store.list(), [{ key, record: { token } }])
})

t.test('neither uses nor changes files that are damaged, or that others can access', async (t) => {
  const { uid } = userInfo()
  const rows: Record<string, (path: string, folder: string) => void> = {
    'readable by others': (path) => chmodSync(path, 0o640),
    'writable by a group': (path) => chmodSync(path, 0o620),
    'in a folder that others may write': (_path, folder) => chmodSync(folder, 0o770),
    'a symbolic link': (path, folder) => {
      renameSync(path, join(folder, 'moved'))
      symlinkSync(join(folder, 'moved'), path)
    },
    'a hard link': (path, folder) => linkSync(path, join(folder, 'twin')),
    'cut off': (path) => writeFileSync(path, readFileSync(path, 'utf8').slice(0, -10)),
    empty: (path) => writeFileSync(path, ''),
    'of a later version': (path) =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('"version": 1', '"version": 2')),
    'with a member that is not known': (path) =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('"version"', '"more": 1, "version"')),
    'with a name twice': (path) =>
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace('"version"', '"endpoint": "https://evil.example", "version"'),
      ),
    'with a scope that is none': (path) =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('"asked": []', '"asked": [1]')),
    'too large': (path) => writeFileSync(path, ' '.repeat(300 * 1024)),
    'a folder': (path) => {
      rmSync(path)
      mkdirSync(path)
    },
  }
  for (const [name, spoil] of Object.entries(rows)) {
    await t.test(name, async (t) => {
      const { folder, store, path } = await stored(t)
      spoil(path, folder)
      const before = store.stamp(key)
      t.match(await reasonOf(store.read(key)), { reason: 'store_refused', message: path })
      t.match(await reasonOf(store.change(key, holder, (record) => delete record.token)), { reason: 'store_refused' })
      t.match(await reasonOf(store.remove(key)), { reason: 'store_refused' })
      t.match(await store.list(), [{ key, refusal: path }])
      t.equal(store.stamp(key), before, 'it is as it was')
    })
  }
  if (uid !== 0)
    await t.test('of another user', async (t) => {
      const { folder } = await stored(t)
      t.match(await reasonOf(new FileStore({ folder, uid: uid + 1 }).read(key)), { reason: 'store_refused' })
    })
})

t.test('a request with a refused file goes nowhere, and nobody is asked to sign in', async (t) => {
  const leap = leaper(t)
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, folder, visits } = signingIn(t, { server })
  const sent = await unauthorized()
  chmodSync(join(folder, `${account.key}.json`), 0o644)
  t.match(await reasonOf(unauthorized(sent)), { reason: 'store_refused' })
  leap(LOOK_EVERY)
  t.match(await reasonOf(Promise.resolve(account.authorization(never))), { reason: 'store_refused' })
  t.equal(visits.length, 1)
})

t.test('an empty record has no file', async (t) => {
  const { folder, store } = await stored(t)
  await store.change(key, holder, (record) => {
    delete record.token
  })
  t.same(readdirSync(folder), [])
  await store.change(key, holder, () => {})
  t.same(readdirSync(folder), [])
})

t.test('a change that fails changes nothing', async (t) => {
  const { store, path } = await stored(t)
  const before = readFileSync(path, 'utf8')
  await t.rejects(
    store.change(key, holder, (record) => {
      delete record.token
      throw new Error('no')
    }),
  )
  t.equal(readFileSync(path, 'utf8'), before)
})

t.test('keeps all simultaneous changes', async (t) => {
  const { folder, store } = await stored(t)
  const stores = [store, new FileStore({ folder }), new FileStore({ folder })]
  await Promise.all(
    Array.from({ length: 12 }, (_, nth) =>
      stores[nth % 3]?.change(key, holder, (record) => {
        record.began.push(nth)
      }),
    ),
  )
  t.same(
    (await store.read(key))?.began.sort((one, other) => one - other),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  )
})

t.test('on a read-only disk, tokens live as long as the process, with a warning', async (t) => {
  const folder = join(temporaryFolder(t), 'file', 'tokens')
  writeFileSync(join(folder, '..'), 'a file in the place of a folder')
  const told: string[] = []
  const store = new FileStore({ folder, onDegraded: (why) => told.push(why) })
  for (const access of ['one', 'two'])
    await store.change(key, holder, (record) => {
      record.token = { ...token, access }
    })
  t.match(await store.read(key), { token: { access: 'two' } })
  t.match(await store.list(), [{ key, record: { token: { access: 'two' } } }])
  t.equal(told.length, 1)
  t.match(told[0], folder)
  t.notMatch(told[0], /two/)
  await store.remove(key)
  t.equal(await store.read(key), undefined)
})

t.test('nobody else can change records in memory', async (t) => {
  const store = new MemoryStore()
  t.equal(store.stamp(key), '')
  await store.change(key, holder, (record) => {
    record.token = token
  })
  const stamp = store.stamp(key)
  const read = await store.read(key)
  if (read?.token) read.token.access = 'changed'
  t.match(await store.read(key), { token: { access: 'a' } })
  t.equal(store.stamp(key), stamp)
  t.equal((await store.list()).length, 1)
  await store.remove(key)
  t.not(store.stamp(key), stamp)
})

t.test('the key of an account depends on server, user, resource and parameters', async (t) => {
  const keys = [
    accountKey(holder, { grant: 'code' }),
    accountKey({ ...holder, endpoint: 'https://a.example/mcp2' }, { grant: 'code' }),
    accountKey({ ...holder, account: 'work' }, { grant: 'code' }),
    accountKey(holder, { grant: 'code', resource: 'https://a.example' }),
    accountKey(holder, { grant: 'code', resource: false }),
    accountKey(holder, { grant: 'code', params: { a: 'b' } }),
  ]
  t.equal(new Set(keys).size, keys.length)
  t.equal(
    accountKey(holder, { grant: 'code', params: { a: 'b', c: 'd' } }),
    accountKey(holder, { grant: 'code', params: { c: 'd', a: 'b' } }),
  )
  t.ok(keys.every((one) => /^[0-9a-f]{64}$/.test(one)))
})

t.test('stores tokens in the configuration folder', async (t) => {
  t.equal(defaultTokenFolder({}, '/home/x'), '/home/x/.config/mcp-bridge/tokens')
  t.equal(defaultTokenFolder({ XDG_CONFIG_HOME: '/etc/x' }, '/home/x'), '/etc/x/mcp-bridge/tokens')
  t.equal(defaultTokenFolder({ XDG_CONFIG_HOME: 'x' }, '/home/x'), '/home/x/.config/mcp-bridge/tokens')
})
