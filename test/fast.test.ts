/** The list of what the inner loop leaves out (.ci/fast.mjs) is short, and has nothing in it that does not exist. */
import { spawnSync } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

t.test('test:fast runs most of the tests of protocol and wire, and every file that it leaves out exists', async (t) => {
  const script = fileURLToPath(new URL('../.ci/fast.mjs', import.meta.url))
  const { status, stdout } = spawnSync(execPath, [script, '--list'], { encoding: 'utf8' })
  t.equal(status, 0, stdout)
  const names = stdout.split('\n')
  for (const name of ['rpc/splice', 'protocol/headers', 'wire/relay', 'wire/same-era']) t.ok(names.includes(name), name)
  t.notOk(names.includes('wire/reopened-session'), 'what is slow is left out')
})
