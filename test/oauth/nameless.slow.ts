/** A container may run as a user whom nothing names. */

import { spawn } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { execPath, getuid } from 'node:process'
import t from 'tap'
import { build } from '../support/built.js'
import { says, watchProgram } from '../support/cli.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const skip = getuid?.() !== 0 && 'it takes root to run a program as somebody else'

t.test('a user without a name and a home needs no token store until there are tokens', { skip }, async (t) => {
  const main = build(t)
  chmodSync(dirname(dirname(main)), 0o755)
  const url = await startSdkV1(t, () => {})
  const args = [main, '--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--upstream', url]
  const program = watchProgram(t, spawn(execPath, args, { uid: 54_321, gid: 54_321, cwd: '/', env: {} }))
  await says(program, /"event":"server_ready"/)
})

t.test('a user without a name, as on OpenShift, has a trust store', { skip }, async (t) => {
  const main = build(t)
  chmodSync(dirname(dirname(main)), 0o755)
  const as = { uid: 54_321, gid: 54_321, cwd: '/', env: { HOME: '/nowhere' } }
  const program = watchProgram(t, spawn(execPath, [main, 'trust', 'list', '--json'], as))
  t.equal(await program.ended, 0, program.stderr())
})
