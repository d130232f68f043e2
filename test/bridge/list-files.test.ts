/** Lists of servers in files: only their user can read them, they are bounded, and what cannot be used is said once. */
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ListFiles } from '../../src/app/list-files.js'
import type { Log } from '../../src/base/log/events.js'
import { temporaryFolder } from '../support/folder.js'

const isWindows = process.platform === 'win32'

function filesIn(folder: string) {
  const lines: object[] = []
  const log = { warn: (fields: object) => lines.push(fields) } as unknown as Pick<Log, 'warn'>
  return { files: new ListFiles({ folder, log }), lines }
}

t.test('what is written can be read, by its user only', async (t) => {
  const folder = join(temporaryFolder(t), 'a', 'lists')
  const { files, lines } = filesIn(folder)
  t.equal(await files.read('key'), undefined)
  await files.write('key', 'one')
  await files.write('key', 'two é')
  t.equal(await filesIn(folder).files.read('key'), 'two é')
  t.same(lines, [])
  const [name = '', ...others] = readdirSync(folder)
  t.same(others, [], 'nothing else is left')
  if (isWindows) return
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
})

t.test(
  'a file that others can read is neither used nor changed, and that is said once',
  { skip: isWindows },
  async (t) => {
    const folder = join(temporaryFolder(t), 'lists')
    const { files, lines } = filesIn(folder)
    await files.write('key', 'one')
    const path = join(folder, readdirSync(folder)[0] as string)
    chmodSync(path, 0o644)
    t.equal(await files.read('key'), undefined)
    t.equal(await files.read('key'), undefined)
    await files.write('key', 'two')
    t.match(lines, [{ event: 'lists_not_kept', path, why: /others may read it/ }])
    t.equal(lines.length, 1)
    chmodSync(path, 0o600)
    t.equal(await files.read('key'), 'one')
  },
)

t.test('a folder that cannot be written is said once', async (t) => {
  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, '')
  const { files, lines } = filesIn(join(file, 'lists'))
  await files.write('one', 'text')
  await files.write('two', 'text')
  t.equal(await files.read('one'), undefined)
  t.match(lines, [{ event: 'lists_not_kept' }])
  t.equal(lines.length, 1)
})

t.test('files that others have written count, too, and only unknown ones are looked at', async (t) => {
  const folder = join(temporaryFolder(t), 'lists')
  const { files } = filesIn(folder)
  await files.write('own', 'text')
  const path = join(folder, 'own.lists')
  const old = Date.now() / 1_000 - 40 * 86_400
  utimesSync(path, old, old)
  await files.write('second', 'text')
  t.ok(existsSync(path), 'it is known')
  t.equal(await files.read('own'), undefined)
  await files.write('third', 'text')
  t.notOk(existsSync(path), 'it has turned out to be old')
})

t.test('old files, and the oldest of too many, are removed', async (t) => {
  const folder = join(temporaryFolder(t), 'lists')
  mkdirSync(folder, { mode: 0o700 })
  const { files } = filesIn(folder)
  const seconds = Date.now() / 1_000
  for (let n = 0; n < 600; n++) {
    const path = join(folder, `${n}.lists`)
    writeFileSync(path, 'x', { mode: 0o600 })
    utimesSync(path, seconds - n - 10, seconds - n - 10)
  }
  await files.write('old', 'text')
  utimesSync(join(folder, 'old.lists'), seconds - 40 * 86_400, seconds - 40 * 86_400)
  t.equal(await files.read('old'), undefined, 'too old')
  await files.write('new', 'text')
  t.notOk(existsSync(join(folder, 'old.lists')))
  t.equal(readdirSync(folder).length, 500)
  t.ok(existsSync(join(folder, '0.lists')) && !existsSync(join(folder, '599.lists')), 'the newest stay')
  for (let n = 0; n < 3; n++) {
    const path = join(folder, `large-${n}.lists`)
    writeFileSync(path, Buffer.alloc(30 * 1024 * 1024), { mode: 0o600 })
    utimesSync(path, seconds - n, seconds - n)
  }
  await files.write('last', 'text')
  t.notOk(existsSync(join(folder, 'large-2.lists')), 'nor more than 64 MiB')
  t.ok(existsSync(join(folder, 'large-1.lists')))
})
