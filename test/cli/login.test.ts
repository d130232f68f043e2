/** `mcp-bridge login` at servers that need no sign-in: it says so, and what to do instead. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { runLogin, type SignInTarget } from '../../src/command/auth.js'
import { run } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { ModernHttp } from '../support/modern-http.js'
import { startSdkV1 } from '../support/sdk-v1.js'

t.test('login at a server without a sign-in explains that, and exits with 1', async (t) => {
  const legacy = await startSdkV1(t, (server) => {
    server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
  })
  const modern = await ModernHttp.start(t)
  const config = temporaryFile(t, 'mcp.json', JSON.stringify({ mcpServers: { notes: { url: modern.url } } }))
  const servers: [name: string, args: readonly string[]][] = [
    ['127.0.0.1', [legacy]],
    ['notes', ['notes', '--config', config]],
  ]
  for (const [name, args] of servers) {
    const store = ['--token-store', temporaryFolder(t)]
    const { code, stdout, stderr } = await run(t, ['login', ...args, ...store, '--no-browser'])
    t.equal(code, 1, stderr)
    t.equal(stdout, '', 'nobody is signed in')
    const [progress, said = '', next] = stderr.trim().split('\n')
    t.equal(progress, `Signing in to ${name} …`)
    t.ok(said.startsWith(`mcp-bridge: "${name}" answers without a sign-in, so it needs none: start the bridge, `), said)
    t.match(said, /, and clients can use it\. If some of its tools require one: \S/)
    const [, probing = ''] = /^ {2}(mcp-bridge probe .*) shows what the server requires\./.exec(next ?? '') ?? []
    const [server = ''] = args
    const file = args.length > 1 ? ` --config ${config}` : ''
    t.match(probing, new RegExp(`^mcp-bridge probe ${server}${file} --token-store `))
  }
})

t.test('reports a declined sign-in, even if the server answers without one', async (t) => {
  const declined = new Fault('signInRefused', 'Signing in was declined')
  const account = { login: () => Promise.reject(declined), paste: async () => false }
  const accounts = { settings: {}, of: () => account }
  const target = { name: 'notes', accounts, ask: async () => ({ era: 'legacy' }) } as unknown as SignInTarget
  const typed = (async function* () {})()
  const output = { out: () => {}, err: () => {} } as unknown as Parameters<typeof runLogin>[1]
  const signal = new AbortController().signal
  await t.rejects(runLogin(target, output, typed, signal), declined)
})
