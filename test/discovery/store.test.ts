/** The trust store: what it keeps, what it does not use, and what happens when several write or one is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
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
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { locked } from '../../src/base/net/lock.js'
import { defaultStorePath, TrustStore } from '../../src/services/discovery/trust/store.js'
import { temporaryFolder } from '../support/folder.js'
import { programArgs } from '../support/program.js'
import { bytesOf, DAY, DELETE_ALL, ENDPOINT, listOf, manifestOf, NOW, publisherWith, READ } from '../support/trust.js'

const acme = await publisherWith('ed25519')
const [PIN, BACKUP] = [`${'A'.repeat(43)}=`, `${'B'.repeat(42)}A=`]
const URL = 'https://acme.example/.well-known/mcp.json'
const ORIGIN = 'https://mcp.acme.example'
const approval = {
  endpoint: ENDPOINT,
  name: 'weather',
  tools: ['read'],
  bound: 'none',
  list: listOf(READ),
  until: NOW + DAY,
}

function storeIn(t: Test, options: object = {}): TrustStore {
  return new TrustStore({ path: join(temporaryFolder(t), 'mcp-bridge', 'trust.json'), now: () => NOW, ...options })
}

/** A store in which something of everything is kept. */
async function fullStore(t: Test): Promise<TrustStore> {
  const store = storeIn(t)
  await store.addKey('acme.example', acme.key)
  await store.pin(ORIGIN, [PIN, BACKUP])
  await store.approve(approval)
  await store.noteSerial('acme.example', URL, { serial: 7, digest: 'x' })
  await store.noteTools('https://other.example/mcp', 'key x y', listOf(READ))
  return store
}

function trustsNothing(t: Test, store: TrustStore): void {
  t.same(store.keysOf('acme.example'), [])
  t.equal(store.pinsOf(ORIGIN), undefined)
  t.equal(store.approvalOf(ENDPOINT), undefined)
  t.equal(store.seenOf('https://other.example/mcp'), undefined)
  t.same(store.list(), { keys: [], pins: [], approvals: [] })
}

t.test('without a store, nothing is trusted, and nothing is wrong', async (t) => {
  const store = storeIn(t)
  trustsNothing(t, store)
  t.equal(store.refusal, undefined)
  t.notOk(existsSync(store.path))
})

t.test('another process reads what was stored, in a file that no other user can access', async (t) => {
  const { path } = await fullStore(t)
  const store = new TrustStore({ path })
  t.same(
    store.keysOf('acme.example').map(({ id, jwk }) => ({ id, jwk })),
    [acme.key],
  )
  t.same(store.pinsOf(ORIGIN), [PIN, BACKUP])
  t.match(store.approvalOf(ENDPOINT), { tools: ['read'], bound: 'none', since: NOW, until: NOW + DAY })
  t.match(store.lastOf('acme.example', URL), { serial: 7, digest: 'x' })
  t.equal(store.seenOf('https://other.example/mcp')?.list.digest, listOf(READ).digest)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  t.same(readdirSync(dirname(path)), ['trust.json'])
})

t.test('all processes see a change at once', async (t) => {
  const one = await fullStore(t)
  const other = new TrustStore({ path: one.path, now: () => NOW + 1 })
  t.ok(other.approvalOf(ENDPOINT))
  t.equal(await one.revoke(ENDPOINT), true)
  t.equal(other.approvalOf(ENDPOINT), undefined)
  t.equal(await other.removeKey('acme.example', acme.key.id), true)
  t.same(one.keysOf('acme.example'), [])
  t.equal(await one.unpin(ORIGIN), true)
  t.equal(other.pinsOf(ORIGIN), undefined)
  rmSync(one.path)
  t.equal(other.lastOf('acme.example', URL), undefined)
  t.match(one.lastOf('acme.example', URL), { serial: 7 }, 'a process does not forget what it has noted')
})

t.test('cannot remove an absent entry', async (t) => {
  const store = await fullStore(t)
  t.equal(await store.revoke('https://nobody.example'), false)
  t.equal(await store.removeKey('other.example', acme.key.id), false)
  t.equal(await store.unpin('https://nobody.example'), false)
})

t.test('an approval replaces another, a serial never decreases, tools are first seen once', async (t) => {
  const store = await fullStore(t)
  await store.approve({ ...approval, tools: ['*'] })
  t.same(store.list().approvals.length, 1)
  t.same(store.approvalOf(ENDPOINT)?.tools, ['*'])
  await store.noteSerial('acme.example', URL, { serial: 6, digest: 'y' })
  t.match(store.lastOf('acme.example', URL), { serial: 7, digest: 'x' })
  await store.noteTools('https://other.example/mcp', 'key x y', listOf(DELETE_ALL))
  t.equal(store.seenOf('https://other.example/mcp')?.list.digest, listOf(READ).digest)
  await store.noteTools('https://other.example/mcp', 'key x z', listOf(DELETE_ALL))
  t.equal(store.seenOf('https://other.example/mcp')?.list.digest, listOf(DELETE_ALL).digest)
})

t.test('a withdrawn approval stays withdrawn until the next approval', async (t) => {
  let now = NOW
  const store = storeIn(t, { now: () => now })
  await store.approve(approval)
  const given = store.approvalOf(ENDPOINT)
  t.ok(given)
  if (given) await store.withdraw(given, 'its tools have changed')
  const other = new TrustStore({ path: store.path })
  t.equal(other.approvalOf(ENDPOINT)?.withdrawn, 'its tools have changed')
  now++
  await store.approve(approval)
  t.equal(store.approvalOf(ENDPOINT)?.withdrawn, undefined)
  t.equal(other.approvalOf(ENDPOINT)?.withdrawn, undefined)
})

t.test('remembers a verified manifest, and refuses an older one, or another one with its serial', async (t) => {
  const store = storeIn(t)
  await store.addKey('acme.example', acme.key)
  const verify = async (changes: object, url = URL) => {
    const bytes = bytesOf(manifestOf(changes))
    return store.verify({ url, bytes, jws: await acme.sign(bytes) })
  }
  t.match(await verify({}), { trusted: true })
  t.match(await verify({}), { trusted: true })
  t.match(await verify({ serial: 6 }), { trusted: false, reason: 'rolled-back' })
  t.match(await verify({ servers: [] }), { trusted: false, reason: 'rolled-back' })
  t.match(await verify({ serial: 6 }, 'https://acme.example/other.json'), { trusted: true }, 'at another address')
  t.match(await verify({ serial: 8 }), { trusted: true })
  t.match(await verify({}), { trusted: false, reason: 'rolled-back' })
  const restarted = new TrustStore({ path: store.path, now: () => NOW })
  t.match(restarted.lastOf('acme.example', URL), { serial: 8 })
})

t.test('stores tools of any name', async (t) => {
  const store = storeIn(t)
  const names = ['__proto__', 'constructor', 'a b', '', 'ü\n']
  await store.approve({ ...approval, list: listOf(...names.map((name) => ({ name }))) })
  t.same(
    new TrustStore({ path: store.path }).approvalOf(ENDPOINT)?.list.tools.map(([name]) => name),
    names,
  )
})

t.test('does not write an invalid store', async (t) => {
  const store = await fullStore(t)
  const before = readFileSync(store.path)
  const wrong = [
    () => store.pin(ORIGIN, ['sha256/x']),
    () => store.pin(ORIGIN, []),
    () => store.approve({ ...approval, tools: [] }),
    () => store.approve({ ...approval, until: Number.POSITIVE_INFINITY }),
  ]
  for (const change of wrong) await t.rejects(change(), { name: 'TrustStoreError' })
  t.same(readFileSync(store.path), before)
  t.same(readdirSync(dirname(store.path)), ['trust.json'])
})

const damaged: [name: string, damage: (path: string, text: string) => void, says: RegExp][] = [
  ['that is empty', (path) => writeFileSync(path, ''), /damaged/],
  ['that ends in the middle', (path, text) => writeFileSync(path, text.slice(0, -20)), /damaged/],
  ['with something behind it', (path, text) => writeFileSync(path, `${text}x`), /damaged/],
  [
    'with a byte that is none',
    (path, text) => writeFileSync(path, Buffer.concat([bytesOf(text), Buffer.from([0xff])])),
    /damaged/,
  ],
  ['with a mark before it', (path, text) => writeFileSync(path, `\ufeff${text}`), /damaged/],
  ['that is all zeros', (path, text) => writeFileSync(path, Buffer.alloc(text.length)), /damaged/],
  [
    'in which something stands twice',
    (path, text) => writeFileSync(path, text.replace('"keys"', '"keys": [], "keys"')),
    /damaged/,
  ],
  ['of another version', (path, text) => writeFileSync(path, text.replace('"version": 1', '"version": 2')), /version/],
  ['that is a list', (path) => writeFileSync(path, '[]'), /its content is invalid/],
  [
    'with a member that nobody knows',
    (path, text) => writeFileSync(path, text.replace('{', '{"trustAll":true,')),
    /its content is invalid/,
  ],
  ['with a key of another kind', (path, text) => writeFileSync(path, text.replace('"OKP"', '"oct"')), /keys\.0\.jwk/],
  ['with a pin that is none', (path, text) => writeFileSync(path, text.replace(PIN, 'x')), /pins\.0\.pins\.0/],
  [
    'with an approval that never ends',
    (path, text) => writeFileSync(path, text.replace(String(NOW + DAY), '1e999')),
    /approvals\.0\.until/,
  ],
  ['that is larger than any', (path, text) => writeFileSync(path, text.padEnd(8 * 1024 * 1024 + 1)), /larger/],
  ['that others may write', (path) => chmodSync(path, 0o602), /others may write it/],
  ['that a group may write', (path) => chmodSync(path, 0o620), /others may write it/],
  ['in a folder that others may write', (path) => chmodSync(dirname(path), 0o777), /others may write its folder/],
  [
    'that is a symbolic link',
    (path) => {
      renameSync(path, `${path}.real`)
      symlinkSync(`${path}.real`, path)
    },
    /symbolic link/,
  ],
  [
    'that is a symbolic link to nowhere',
    (path) => {
      rmSync(path)
      symlinkSync('/nonexistent', path)
    },
    /symbolic link/,
  ],
  [
    'that is a folder',
    (path) => {
      rmSync(path)
      mkdirSync(path)
    },
    /it is not a regular file/,
  ],
]
for (const [name, damage, says] of damaged)
  t.test(`does not use or change a file ${name}, and names it`, async (t) => {
    const store = await fullStore(t)
    const text = readFileSync(store.path, 'utf8')
    damage(store.path, text)
    const after = statSync(store.path, { throwIfNoEntry: false })?.isFile() ? readFileSync(store.path) : undefined
    for (const one of [new TrustStore({ path: store.path }), store]) {
      t.match(one.refusal, says)
      t.match(one.refusal, one.path)
      if (one !== store) trustsNothing(t, one)
      await t.rejects(one.pin(ORIGIN, [PIN]), { name: 'TrustStoreError', message: says })
      await t.rejects(one.approve(approval), { name: 'TrustStoreError' })
    }
    if (after) t.same(readFileSync(store.path), after)
  })

t.test('refuses a file of another user, unless it is root', async (t) => {
  const store = await fullStore(t)
  const mine = statSync(store.path).uid
  const stranger = new TrustStore({ path: store.path, uid: mine + 1 })
  if (mine !== 0) t.match(stranger.refusal, /belongs to another user/)
  else {
    t.equal(stranger.refusal, undefined)
    chownSync(store.path, 4711, 4711)
    t.match(store.refusal, /belongs to another user/)
    trustsNothing(t, new TrustStore({ path: store.path }))
    chownSync(store.path, mine, mine)
    chownSync(dirname(store.path), 4711, 4711)
    t.match(new TrustStore({ path: store.path }).refusal, /folder belongs to another user/)
  }
})

t.test('with any byte lost or changed, a store is read whole or refused', async (t) => {
  const store = await fullStore(t)
  const text = readFileSync(store.path)
  for (let at = 0; at < text.length; at += 37) {
    for (const damagedText of [text.subarray(0, at), Buffer.concat([text.subarray(0, at), text.subarray(at + 1)])]) {
      writeFileSync(store.path, damagedText, { mode: 0o600 })
      const found = new TrustStore({ path: store.path })
      if (found.refusal === undefined) t.match(JSON.parse(damagedText.toString()), { version: 1 })
      else trustsNothing(t, found)
    }
  }
})

t.test('where the store cannot be written, records apply to this process, and are written when it can', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const told: unknown[] = []
  const path = join(file, 'trust.json')
  const store = new TrustStore({ path, now: () => NOW, changed: (failure) => told.push(failure) })
  await store.noteSerial('acme.example', URL, { serial: 7, digest: 'x' })
  await store.noteTools(ENDPOINT, 'key x y', listOf(READ))
  await store.withdraw({ endpoint: ENDPOINT, since: NOW }, 'changed')
  t.match(store.lastOf('acme.example', URL), { serial: 7 })
  t.match(store.seenOf(ENDPOINT), { bound: 'key x y', withdrawn: 'changed' })
  await t.rejects(store.pin(ORIGIN, [PIN]))
  await store.writeNoted()
  t.match(told, [{ code: /ENOTDIR|EEXIST/ }])
  t.equal(told.length, 1, 'told once')

  rmSync(file)
  await store.noteSerial('other.example', URL, { serial: 1, digest: 'y' })
  t.equal(told.length, 2)
  t.equal(told[1], undefined)
  const restarted = new TrustStore({ path })
  t.match(restarted.lastOf('acme.example', URL), { serial: 7 })
  t.match(restarted.lastOf('other.example', URL), { serial: 1 })
  t.match(restarted.seenOf(ENDPOINT), { bound: 'key x y', withdrawn: 'changed' })
  await store.writeNoted()
  t.equal(told.length, 2)
})

t.test('the store is in the configuration folder of the user', async (t) => {
  t.equal(defaultStorePath({ XDG_CONFIG_HOME: '/c' }, '/home/me'), '/c/mcp-bridge/trust.json')
  for (const XDG_CONFIG_HOME of [undefined, '', 'relative'])
    t.equal(defaultStorePath({ XDG_CONFIG_HOME }, '/home/me'), '/home/me/.config/mcp-bridge/trust.json')
})

function write(t: Test, ...args: string[]): ChildProcess {
  const child = spawn(execPath, [...programArgs('support/trust-writer'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('of several processes that write at once, none loses changes of another', async (t) => {
  const { path } = storeIn(t)
  const children = ['a', 'b', 'c'].map((name) => write(t, path, name, '15'))
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]))
  t.same(codes, [0, 0, 0])
  t.equal(new TrustStore({ path }).list().pins.length, 45)
  t.same(readdirSync(dirname(path)), ['trust.json'])
})

t.test('of many changes in one process, none is lost', async (t) => {
  const store = storeIn(t)
  await Promise.all(Array.from({ length: 30 }, (_, at) => store.pin(`https://h${at}.example`, [PIN])))
  t.equal(store.list().pins.length, 30)
})

t.test('a process that is killed while it writes leaves a whole file, and delays others only briefly', async (t) => {
  const { path } = storeIn(t)
  const store = new TrustStore({ path, lock: { patience: 200 } })
  await store.addKey('acme.example', acme.key)
  for (let round = 0; round < 10; round++) {
    const child = write(t, path, `r${round}`)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    await sleep(Math.random() * 60)
    child.kill('SIGKILL')
    await once(child, 'exit')
    t.equal(store.refusal, undefined)
    t.equal(store.keysOf('acme.example').length, 1)
    await store.pin('https://mine.example', [PIN])
  }
  t.same(readdirSync(dirname(path)), ['trust.json'])
})

t.test('a slow process loses its lock, and starts over', async (t) => {
  const path = join(temporaryFolder(t), 'lock')
  let tries = 0
  const done = await locked(
    path,
    (stillMine) => {
      // As if it had been taken away and been made by another in the meantime.
      if (tries++ === 0) writeFileSync(path, 'another')
      stillMine()
      return tries
    },
    { uid: userInfo().uid, patience: 50, interval: 5 },
  )
  t.equal(done, 2)
  t.notOk(existsSync(path))
})
