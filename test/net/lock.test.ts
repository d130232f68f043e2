/** The lock between processes: what is not a lock file of this user is refused, and changes nothing. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, linkSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { LockRefused, locked } from '../../src/base/net/lock.js'
import { TrustStore } from '../../src/services/discovery/trust/store.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { temporaryFolder } from '../support/folder.js'

const { uid } = userInfo()
const holder = { endpoint: 'https://a.example/mcp', account: 'local' }

/** What stands in the place of the lock file, and why it is refused. False: it cannot be made here. */
const KINDS: Record<string, { make: (path: string, t: Test) => unknown; why: RegExp }> = {
  'a dangling link': { make: (path) => symlinkSync(`${path}.nothing`, path), why: /symbolic link/ },
  'a link to itself': { make: (path) => symlinkSync(path, path), why: /symbolic link/ },
  'a link to a file of others': { make: (path) => symlinkSync('/etc/hosts', path), why: /symbolic link/ },
  'a link to a device': { make: (path) => symlinkSync('/dev/zero', path), why: /symbolic link/ },
  'a link to a folder': { make: (path) => symlinkSync('/', path), why: /symbolic link/ },
  'a FIFO': { make: (path) => execFileSync('mkfifo', [path]), why: /not a regular file/ },
  'a link to a FIFO': {
    make: (path) => {
      execFileSync('mkfifo', [`${path}.fifo`])
      symlinkSync(`${path}.fifo`, path)
    },
    why: /symbolic link/,
  },
  'a folder': { make: (path) => mkdirSync(path), why: /not a regular file/ },
  'a socket': {
    make: async (path, t) => {
      const server = createServer().listen(path)
      t.teardown(() => server.close())
      await once(server, 'listening')
    },
    why: /not a regular file/,
  },
  'a device': {
    make: (path) => {
      try {
        execFileSync('mknod', [path, 'c', '1', '5'], { stdio: 'ignore' })
        return true
      } catch {
        return false
      }
    },
    why: /not a regular file/,
  },
  'a large file': { make: (path) => writeFileSync(path, 'x'.repeat(65)), why: /larger than/ },
  'a file that others may write': {
    make: (path) => {
      writeFileSync(path, 'x')
      chmodSync(path, 0o666)
    },
    why: /others may write it/,
  },
  'a hard link to a file of others': {
    make: (path) => {
      if (uid !== 0) return false
      const other = join(temporaryFolder(t), 'other')
      writeFileSync(other, 'x')
      chownSync(other, 12_345, 12_345)
      linkSync(other, path)
      return true
    },
    why: /another user/,
  },
}

for (const [name, { make, why }] of Object.entries(KINDS)) {
  t.test(`refuses ${name} in place of a lock file, and leaves it`, async (t) => {
    const folder = join(temporaryFolder(t), 'own')
    mkdirSync(folder, { mode: 0o700 })
    const path = join(folder, 'lock')
    if ((await make(path, t)) === false) return void t.pass('it cannot be made here')
    const { ino } = lstatSync(path)
    let changes = 0
    const refused = await locked(path, () => changes++, { uid, patience: 20, interval: 1 }).catch(
      (error: unknown) => error,
    )
    t.ok(refused instanceof LockRefused)
    t.match(refused, { message: why })
    t.match(refused, { message: path })
    t.equal(changes, 0)
    t.equal(lstatSync(path).ino, ino)
  })

  t.test(`the stores of tokens and of trust report ${name} in place of their lock file`, async (t) => {
    const folder = join(temporaryFolder(t), 'own')
    mkdirSync(folder, { mode: 0o700 })
    if ((await make(join(folder, 'key.json.lock'), t)) === false) return void t.pass('it cannot be made here')
    await make(join(folder, 'trust.json.lock'), t)
    const before = readdirSync(folder)
    const degraded: string[] = []
    const tokens = new FileStore({ folder, onDegraded: (why) => degraded.push(why) })
    const trust = new TrustStore({ path: join(folder, 'trust.json') })
    const began = tokens.change('key', holder, (record) => record.began.push(1)).catch((error: unknown) => error)
    t.match(await began, { fault: 'storeRefused', message: why })
    await t.rejects(trust.unpin('https://a.example'), { name: 'TrustStoreError', message: why })
    t.same(degraded, [], 'tokens are not kept elsewhere instead')
    t.same(readdirSync(folder), before)
  })
}

t.test('waits for a lock file that vanishes without busy looping', async (t) => {
  const path = join(temporaryFolder(t), 'lock')
  writeFileSync(path, 'somebody')
  let turns = 0
  const ticking = setInterval(() => turns++, 1)
  t.teardown(() => clearInterval(ticking))
  await locked(path, () => {}, { uid, patience: 100, interval: 5 })
  t.ok(turns > 0)
  t.same(readdirSync(dirname(path)), [])
})
