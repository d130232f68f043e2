import { chmodSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readPrivateFile, removePrivateFile, stampOf, writePrivateFile } from '../../src/base/net/private-file.js'

const { uid } = userInfo()
const rules = { uid, maxBytes: 1_000, secret: true }
const mine = () => {}

const folderOf = (t: Test) => {
  const folder = join(t.testdir(), 'own')
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

t.test('a file is read as written, and only by its user', async (t) => {
  const path = join(folderOf(t), 'one.json')
  t.match(readPrivateFile(path, rules), { kind: 'absent' })
  writePrivateFile(path, Buffer.from('one'), mine)
  t.match(readPrivateFile(path, rules), { kind: 'file', bytes: Buffer.from('one') })
})

t.test('the stamp changes with the content, the mode and the end of a file', async (t) => {
  const path = join(folderOf(t), 'one.json')
  const stamps = [stampOf(path)]
  writePrivateFile(path, Buffer.from('one'), mine)
  stamps.push(stampOf(path))
  writePrivateFile(path, Buffer.from('two'), mine)
  stamps.push(stampOf(path))
  chmodSync(path, 0o640)
  stamps.push(stampOf(path))
  t.equal(new Set(stamps).size, 4)
  removePrivateFile(path)
  t.equal(stampOf(path), stamps[0])
})

t.test('a write without its lock changes nothing', async (t) => {
  const path = join(folderOf(t), 'one.json')
  writePrivateFile(path, Buffer.from('one'), mine)
  t.throws(() =>
    writePrivateFile(path, Buffer.from('two'), () => {
      throw new Error('lost')
    }),
  )
  t.equal(readFileSync(path, 'utf8'), 'one')
})

t.test('refuses a secret file that others could read, write or replace', async (t) => {
  const wrong: Record<string, (path: string, folder: string) => void> = {
    'others may read it': (path) => chmodSync(path, 0o644),
    'others may write it': (path) => chmodSync(path, 0o660),
    'it has another name': (path, folder) => linkSync(path, join(folder, 'twin')),
    'others may write its folder': (_path, folder) => chmodSync(folder, 0o777),
    'it is larger than': (path) => writeFileSync(path, 'x'.repeat(1_001)),
  }
  for (const [why, spoil] of Object.entries(wrong)) {
    await t.test(why, async (t) => {
      const folder = folderOf(t)
      const path = join(folder, 'one.json')
      writePrivateFile(path, Buffer.from('one'), mine)
      spoil(path, folder)
      const found = readPrivateFile(path, rules)
      t.equal(found.kind, 'refused')
      t.match(found.kind === 'refused' && found.why, why)
    })
  }
  await t.test('refuses a symbolic link', async (t) => {
    const folder = folderOf(t)
    writePrivateFile(join(folder, 'one.json'), Buffer.from('one'), mine)
    symlinkSync(join(folder, 'one.json'), join(folder, 'link.json'))
    t.match(readPrivateFile(join(folder, 'link.json'), rules), { kind: 'refused', why: 'it is a symbolic link' })
  })
  await t.test('refuses a folder', async (t) => {
    t.match(readPrivateFile(folderOf(t), rules), { kind: 'refused', why: 'it is not a regular file' })
  })
})

t.test('refuses a file of another user', async (t) => {
  const path = join(folderOf(t), 'one.json')
  writePrivateFile(path, Buffer.from('one'), mine)
  // Root may own a file of anybody.
  const found = readPrivateFile(path, { ...rules, uid: uid + 1 })
  t.equal(found.kind, uid === 0 ? 'file' : 'refused')
})
