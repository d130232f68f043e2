/** A configuration that others may write decides which programs are started: it is refused, or warned of. */
import { chmodSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { run, says, startProgram } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { bulkyStdio } from '../support/small-heap.js'

function configuration(t: Test, mode: number, secretMode = 0o600): string {
  const secret = temporaryFile(t, 'secret', 'a-secret-of-somebody')
  chmodSync(secret, secretMode)
  const server = { ...bulkyStdio('legacy'), env: { TOKEN: `\${file:${secret}}` } }
  const file = temporaryFile(t, 'config.json', { mcpServers: { test: server }, listen: 'http://127.0.0.1:0/mcp' })
  chmodSync(file, mode)
  return file
}

t.test('refuses a configuration or a secret that everyone may write', async (t) => {
  for (const file of [configuration(t, 0o666), configuration(t, 0o600, 0o606)]) {
    for (const args of [
      ['--config', file],
      ['check', '--config', file],
    ]) {
      const { code, stderr } = await run(t, args)
      t.equal(code, 78)
      t.match(stderr, /every user of this machine may write to .*chmod o-w/)
    }
  }
})

t.test('warns of a configuration that a group may write, and of no other', async (t) => {
  const warned = startProgram(t, ['--config', configuration(t, 0o664), '--log-format', 'json'])
  await says(warned, /"event":"config_writable","path":"[^"]*config.json"/)
  await says(warned, /listening/)
  const own = startProgram(t, ['--config', configuration(t, 0o644), '--log-format', 'json'])
  await says(own, /listening/)
  t.notMatch(own.stderr(), /may be written/)
})

t.test('refuses a configuration in a folder that everyone may write, also behind a link', async (t) => {
  const file = configuration(t, 0o600)
  const link = join(temporaryFolder(t), 'link.json')
  symlinkSync(file, link)
  chmodSync(dirname(file), 0o777)
  for (const path of [file, link]) {
    const { code, stderr } = await run(t, ['check', '--config', path])
    t.equal(code, 78)
    t.match(
      stderr,
      new RegExp(`every user of this machine may write to ${dirname(file)}, .*chmod o-w ${dirname(file)}`),
    )
  }
  // Nobody else can replace the file there.
  chmodSync(dirname(file), 0o1777)
  t.equal((await run(t, ['check', '--config', file])).code, 0)
})

t.test('warns of a folder that a group may write', async (t) => {
  const file = configuration(t, 0o600)
  chmodSync(dirname(file), 0o770)
  const warned = startProgram(t, ['--config', file, '--log-format', 'json'])
  const [line] = await says(warned, /"event":"config_writable","path":"[^"]*"/)
  t.match(line, `"${dirname(file)}"`)
})
