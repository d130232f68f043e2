/** Files that a command reads: what may never end is refused at once. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { PemFiles } from '../../src/base/net/pem-files.js'
import { parseCommand } from '../../src/command/parse.js'
import { clientAuthOf } from '../../src/services/oauth/client/client-auth.js'
import { readSecretFile } from '../../src/services/oauth/client/secret-file.js'
import { main, run } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'

const skip = process.platform === 'win32' && 'there are no named pipes'

t.test(
  'refuses a named pipe and a device in place of a recording, a configuration and a secret',
  { skip },
  async (t) => {
    const pipe = join(temporaryFolder(t), 'pipe')
    execFileSync('mkfifo', [pipe])
    for (const file of [pipe, '/dev/zero']) {
      const replayed = await run(t, ['replay', file, '--', execPath, '-e', ''])
      t.match(replayed.stderr, /it is not a file/, file)
      t.throws(() => parseCommand(['--config', file], {}), { message: /reading it may never end/ })
      const named = temporaryFile(t, 'config.json', {
        mcpServers: { a: { url: 'http://x.example/mcp', headers: { 'x-key': `\${file:${file}}` } } },
      })
      t.throws(() => parseCommand(['--config', named], {}), { message: /reading it may never end/ })
    }
  },
)

t.test('refuses them in place of certificates, keys and secrets, and in a program', { skip }, async (t) => {
  const pipe = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const file of [pipe, '/dev/zero']) {
    const what = file === pipe ? 'a named pipe' : 'no file'
    t.throws(() => new PemFiles({ cert: file, key: file }), { message: `${file} cannot be read (${what})` })
    t.throws(() => readSecretFile(file, 'oauth.tokenFile'), { message: RegExp(`cannot be read \\(${what}\\)`) })
    const key = { file, alg: 'ES256' as const }
    const client = { id: 'me', method: 'private_key_jwt', how: 'configured' } as never
    await t.rejects(clientAuthOf(client, { key } as never), { message: RegExp(`\\(${what}\\)$`) })
    const mcpServers = { a: { url: 'http://x.example/mcp', headers: { 'x-key': `\${file:${file}}` } } }
    await t.rejects(createBridge({ mcpServers }), { message: /reading it may never end/ })
  }
})

t.test('reads a configuration that another program writes', { skip }, (t) => {
  const file = temporaryFile(t, 'config.json', { mcpServers: { a: { url: 'http://x.example/mcp' } } })
  const checked = execFileSync('bash', ['-c', `${execPath} ${main} check --config <(cat ${file}) 2>&1`])
  t.match(String(checked), /a/)
  t.end()
})
