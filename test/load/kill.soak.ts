/** A child that is killed while it works: nobody is left waiting, and nothing is done twice. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { pause, until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call } from '../support/modern.js'

/** A file that the server notes each call in that it acts on. */
function executions(t: Test): { file: string; counts(): Map<string, number> } {
  const file = join(temporaryFolder(t), 'executions')
  const counts = () => {
    const found = new Map<string, number>()
    for (const key of readFileSync(file, 'utf8').split('\n').filter(Boolean)) found.set(key, (found.get(key) ?? 0) + 1)
    return found
  }
  return { file, counts }
}

function unknownOutcome({ message }: Answer): boolean {
  return message.error?.code === -32603 && message.error.data?.['outcome'] === 'unknown'
}

t.test('killed under load, again and again: every call ends once, with its result or an unknown outcome', async (t) => {
  const { file, counts } = executions(t)
  const stdio = legacyStdio(t, { executions: file })
  const { url } = await startBridge(t, stdio.server, { log: { level: 'error' } })
  await call(url, 'tools/list')
  let finished = 0
  let next = 0
  const outcomes = { done: 0, unknown: 0, other: [] as string[] }
  const caller = async () => {
    while (next < 1_500) {
      const key = `key-${next++}`
      const answer = await call(url, 'tools/call', { name: 'act', arguments: { key, ms: 5 } })
      finished++
      if (answer.text.includes(`"text":"${key}"`)) outcomes.done++
      else if (unknownOutcome(answer)) outcomes.unknown++
      else outcomes.other.push(answer.text)
    }
  }
  const callers = Array.from({ length: 64 }, caller)
  for (let kills = 1; kills <= 5; kills++) {
    await until(() => finished >= kills * 200)
    process.kill(Number(stdio.pids().at(-1)), 'SIGKILL')
  }
  await Promise.all(callers)
  t.same(outcomes.other, [])
  t.equal(outcomes.done + outcomes.unknown, 1_500)
  t.ok(outcomes.unknown > 0 && outcomes.done > 1_000, `${outcomes.done} done, ${outcomes.unknown} unknown`)
  const repeated = [...counts()].filter(([, count]) => count > 1)
  t.same(repeated, [], 'nothing ran twice')
})

t.test('unwritten calls go to the next child, and written ones are not repeated', async (t) => {
  const { file, counts } = executions(t)
  const stdio = legacyStdio(t, { executions: file })
  const { url, bridge } = await startBridge(t, stdio.server, { log: { level: 'error' } })
  await call(url, 'tools/call', { name: 'act', arguments: { key: 'before' } })
  const [first] = stdio.pids()
  process.kill(Number(first), 'SIGSTOP')
  // More than any pipe takes: the first of these is on its way, and the others wait for it.
  const padding = 'x'.repeat(1_000_000)
  const calls = ['a', 'b', 'c', 'd'].map((key) => call(url, 'tools/call', { name: 'act', arguments: { key, padding } }))
  await until(() => bridge.mounts.get('test')?.busy.calls === 4, 'all calls being open')
  await pause(500)
  process.kill(Number(first), 'SIGKILL')
  const answers = await Promise.all(calls)
  t.equal(answers.filter(unknownOutcome).length, 1)
  t.equal(answers.filter(({ message }) => message.result).length, 3)
  t.ok([...counts().values()].every((count) => count === 1))
  t.equal(stdio.pids().length, 2)
})
