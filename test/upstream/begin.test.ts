/** Programs that start ahead of the transport that uses them. */
import childProcess, { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { execPath, platform } from 'node:process'
import t, { type Test } from 'tap'
import { begin, beginAhead } from '../../src/servers/transport/stdio/begin.js'

const skip = platform === 'win32' ? 'there, only a transport starts programs' : false
const start = (script = 'process.stdin.resume()', env = {}) => ({
  command: execPath,
  args: ['-e', script],
  env,
  cwd: undefined,
})

/** All that was started. */
const children: ChildProcess[] = []
const { spawn } = childProcess
childProcess.spawn = ((...args: Parameters<typeof spawn>) => {
  const child = spawn(...args)
  children.push(child)
  return child
}) as typeof spawn

/** Starts a program ahead. */
function ahead(t: Test, ...of: Parameters<typeof start>): ChildProcess {
  beginAhead(start(...of))
  const child = children.at(-1) as ChildProcess
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

function begun(t: Test, ...of: Parameters<typeof start>) {
  const { child, hasSpawned } = begin(start(...of))
  t.teardown(() => child.kill('SIGKILL'))
  return { child, hasSpawned }
}

t.test('the same program is taken, once', { skip }, async (t) => {
  const child = ahead(t)
  await once(child, 'spawn')
  t.same(begun(t), { child, hasSpawned: true })
  const other = begun(t)
  t.not(other.child, child)
  t.equal(other.hasSpawned, false)
})

t.test('one that is taken at once still tells that it starts', { skip }, async (t) => {
  const child = ahead(t)
  t.same(begun(t), { child, hasSpawned: false })
  await once(child, 'spawn')
})

t.test('nothing that it says is lost', { skip }, async (t) => {
  const script = `console.log('early'); process.stdin.resume()`
  const child = ahead(t, script)
  await once(child, 'spawn')
  const [chunk] = (await once(begun(t, script).child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  t.equal(String(chunk), 'early\n')
})

t.test('another one is not taken, and ends', { skip }, async (t) => {
  for (const other of [start('process.stdin.on("data", () => {})'), start(undefined, { A: '1' })]) {
    const child = ahead(t)
    const ended = once(child, 'exit')
    const { child: own } = begin(other)
    t.teardown(() => own.kill('SIGKILL'))
    t.not(own, child)
    t.same(await ended, [null, 'SIGKILL'])
  }
})

t.test('one that has ended is started again', { skip }, async (t) => {
  const child = ahead(t, 'process.exit()')
  await once(child, 'exit')
  t.not(begun(t, 'process.exit()').child, child)
})

t.test('one that cannot be started is left to who needs it', { skip }, async (t) => {
  const missing = { ...start(), command: '/nowhere/program' }
  beginAhead(missing)
  const { child } = begin(missing)
  t.match(await once(child, 'error'), [{ code: 'ENOENT' }])
  t.doesNotThrow(() => beginAhead({ ...start(), args: ['\0'] }))
  t.throws(() => begin({ ...start(), args: ['\0'] }))
})
