/** Whether a command exists on this machine. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { execPath } from 'node:process'
import t from 'tap'
import { isProgram } from '../../src/servers/transport/stdio/on-path.js'
import { temporaryFolder } from '../support/folder.js'

t.test('finds a program on the PATH, also after unreadable folders', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'program'), '')
  mkdirSync(join(folder, 'folder'))
  // A path below a file fails like a folder of another user.
  const path = [join(folder, 'program'), 'x'.repeat(5_000), '', folder].join(delimiter)
  t.equal(isProgram('program', { PATH: path }, undefined), true)
  t.equal(isProgram('folder', { PATH: path }, undefined), false)
  t.equal(isProgram('none', { PATH: path }, undefined), false)
  t.equal(isProgram(execPath, {}, undefined), true)
  t.equal(isProgram('./program', {}, folder), true)
})
