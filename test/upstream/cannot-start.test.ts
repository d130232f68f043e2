/** Programs that cannot be started: the message says what is wrong in the configuration. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath, platform } from 'node:process'
import t from 'tap'
import { causeOf } from '../../src/servers/transport/causes.js'
import type { ChannelError } from '../../src/servers/transport/channel.js'
import { cannotStart } from '../../src/servers/transport/stdio/cannot-start.js'
import { StdioTransport } from '../../src/servers/transport/stdio/stdio.js'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'

const skip = platform === 'win32' ? 'Windows has other errors' : false

const folder = temporaryFolder(t)
const at = (name: string) => join(folder, name)
writeFileSync(at('file'), '#!/bin/sh\n')
writeFileSync(at('orphan'), '#!/no/such/interpreter\n')
chmodSync(at('orphan'), 0o755)
mkdirSync(at('folder'))
symlinkSync(at('loop'), at('loop'))

const LONG = 'x'.repeat(128 * 1024)

const cases: readonly [name: string, start: object, why: string | RegExp][] = [
  ['"cwd" is a file', { cwd: at('file') }, `"cwd" is a file, not a folder: ${at('file')}`],
  ['"cwd" is below a file', { cwd: at('file/x') }, `"cwd" cannot be used: ${at('file/x')} (ENOTDIR)`],
  ['"cwd" does not exist', { cwd: at('none') }, `"cwd" does not exist: ${at('none')}`],
  ['"cwd" has a NUL', { cwd: 'a\0b' }, /^"cwd" cannot be used|contains a NUL/],
  ['a command that does not exist', { command: 'no-such-command' }, 'command not found'],
  ['a command with its arguments', { command: `${execPath} -v` }, /^command not found \(it contains a space/],
  ['a command below a file', { command: at('file/x') }, 'a file is in place of a folder in its path'],
  ['a command that is a folder', { command: at('folder') }, 'it is a folder'],
  ['a relative command that is a folder', { command: './folder', cwd: folder }, 'it is a folder'],
  ['a command that is not executable', { command: at('file') }, 'this user may not execute it'],
  ['a script without its interpreter', { command: at('orphan') }, /^the interpreter .* does not exist$/],
  ['a loop of links', { command: at('loop') }, 'its path has too many symbolic links'],
  ['a long command', { command: at('x'.repeat(300)) }, 'its path, or its command line, is too long'],
  ['a command with NUL', { command: 'a\0b' }, 'its name contains a NUL character'],
  ['an argument with NUL', { args: ['a', 'b\0'] }, 'argument 2 contains a NUL character'],
  ['a variable with NUL', { env: { A: 'a', B: '\0' } }, 'the environment variable B contains a NUL character'],
  ['an argument of 128 KiB', { args: ['-e', LONG] }, 'argument 2 is too long (131072 bytes)'],
  ['a variable of 128 KiB', { env: { TEXT: LONG } }, 'the environment variable TEXT is too long'],
  [
    'very many arguments',
    { args: Array.from({ length: 100 }, () => LONG.slice(100)) },
    'its arguments and environment variables are too long together',
  ],
]

t.test('a program that cannot be started is an error of its entry, which is named', { skip }, async (t) => {
  for (const [name, start, why] of cases) {
    const options = { command: execPath, args: ['-v'], env: { PATH: process.env['PATH'] ?? '' }, ...start }
    const transport = new StdioTransport(options)
    const error = (await transport.open().catch((failed: unknown) => failed)) as ChannelError
    t.equal(error.name, 'ChannelError', name)
    t.equal(error.delivered, 'no', name)
    t.match(error.message.slice(`Cannot start ${options.command}: `.length), why, name)
    await transport.endAll()
  }
})

t.test('callers get the same message, and nothing was executed', { skip }, async (t) => {
  const { url, log } = await startBridge(t, { command: execPath, cwd: at('file') })
  const { error } = (await call(url, 'tools/list')).message
  t.match(error, { message: /"cwd" is a file/, data: { reason: 'upstream_unavailable', outcome: 'not_executed' } })
  t.notMatch(log, [{ level: 50 }])
})

t.test('without free descriptors, the log says which limit to raise', async (t) => {
  const error = cannotStart({ command: 'x', args: [], env: {} }, Object.assign(new Error('x'), { code: 'EMFILE' }))
  t.equal(error.message, 'Cannot start x: too many open files')
  t.match(causeOf(error.cause)?.next, /ulimit -n/)
})
