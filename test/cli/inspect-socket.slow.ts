/** The socket of the inspector of a bridge on stdio: where it would not be safe, there is none, and the bridge works. */
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { messages } from '../support/inspected.js'

const skip = process.platform === 'win32' && 'Windows has pipes'
const EVERYTHING = ['--', execPath, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js']

/** Starts a bridge whose sockets are in a folder `mcp-bridge` of this one. It serves none, and answers. */
async function servesNone(t: Test, state: string, why: RegExp): Promise<void> {
  const bridge = startProgram(t, ['--inspect', '-l', 'stdio', ...EVERYTHING], { XDG_STATE_HOME: state })
  await says(bridge, /(inspector_failed|the inspector cannot be served)/)
  t.match(bridge.stderr(), why)
  bridge.child.stdin.write(`${messages.call('echo', { message: 'hello' })}\n`)
  await until(() => /Echo: hello/.test(bridge.stdout()), 'it answers')
  bridge.child.stdin.end()
  await bridge.ended
}

t.test('refuses a socket in a folder that others may write', { skip }, async (t) => {
  const state = temporaryFolder(t)
  const folder = join(state, 'mcp-bridge')
  mkdirSync(folder)
  chmodSync(folder, 0o777)
  await servesNone(t, state, /others may write its folder/)
  t.same(readdirSync(folder), [])
})

t.test('refuses a socket whose path is too long', { skip }, async (t) => {
  const state = join(temporaryFolder(t), 'a'.repeat(100))
  await servesNone(t, state, /the path of the socket .* is too long/)
  t.same(readdirSync(join(state, 'mcp-bridge')), [], 'nothing is left behind')
})
