/** What happens while a call runs: progress, log messages and second thoughts, with server-everything. */
import { type JSONRPCMessage, LOG_LEVEL_META_KEY } from '@modelcontextprotocol/client'
import t from 'tap'
import { PATIENCE, until } from '../support/eventually.js'
import { combinations, type Part } from '../support/part.js'
import { startEverything, WAYS } from './legacy-servers.js'
import { type Connected, clients } from './modern-clients.js'

/** Seconds between two log messages of server-everything. */
const LOG_INTERVAL = 5
/** Seconds that a call would take that is given up at its first progress, after 0.2 seconds. */
const GIVEN_UP = 12
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

const ways = await startEverything(t)

/** A tool that takes so many seconds and reports each of so many steps. */
const long = (duration: number, steps: number) => ({
  name: 'trigger-long-running-operation',
  arguments: { duration, steps },
})
const sum = { name: 'get-sum', arguments: { a: 2, b: 3 } }
const five = { content: [{ text: 'The sum of 2 and 3 is 5.' }] }

let connecting = Promise.resolve<unknown>(undefined)

/**
 * Connects, and makes a call, because one that waits for a program to start gets progress about that. One client after the other:
 * what a bridge waits for at its start has time limits, and so many processes start slowly at once.
 */
function connectInTurn(connect: () => Promise<Connected>): Promise<Connected> {
  const connected = connecting.then(async () => {
    const one = await connect()
    await one.client.callTool(sum, { timeout: PATIENCE })
    return one
  })
  connecting = connected.catch(() => {})
  return connected
}

/** Tests a part of all combinations of transports and clients. */
export async function testLive(part: Part): Promise<void> {
  const cases = combinations(WAYS, clients, part)
  t.jobs = cases.length
  await Promise.all(
    cases.map(([way, { name, connect }]) =>
      t.test(`${name} follows the notifications of server-everything over ${way}`, { buffered: true }, async (t) => {
        const connected = await connectInTurn(() => connect(t, ways[way]))
        const { client, received, log } = connected

        await t.test('progress of a call increases step by step and comes before its result', async (t) => {
          received.length = 0
          const seen: number[] = []
          await client.callTool(long(0.5, 5), { onprogress: ({ progress }) => seen.push(progress) })
          t.strictSame(
            received.map((message) => ('method' in message ? message.params?.['progress'] : 'result')),
            [1, 2, 3, 4, 5, 'result'],
          )
          // This client drops progress that it reads from a pipe together with the result.
          t.strictSame(seen, [1, 2, 3, 4, 5].slice(0, seen.length))
        })

        await t.test('progress of two concurrent calls goes to each its own', async (t) => {
          received.length = 0
          const none = () => {}
          await Promise.all([
            client.callTool(long(0.4, 2), { onprogress: none }),
            client.callTool(long(0.6, 6), { onprogress: none }),
          ])
          const byToken = new Map<unknown, unknown[]>()
          for (const message of received) {
            if (!('method' in message)) continue
            const { progressToken, progress, total } = message.params ?? {}
            byToken.set(progressToken, [...(byToken.get(progressToken) ?? []), `${progress}/${total}`])
          }
          t.strictSame([...byToken.values()].sort(), [
            ['1/2', '2/2'],
            ['1/6', '2/6', '3/6', '4/6', '5/6', '6/6'],
          ])
        })

        await t.test('a call without a progress token gets no progress', async (t) => {
          received.length = 0
          await client.callTool(long(0.2, 2))
          t.strictSame(
            received.filter((message) => !isAnswer(message)),
            [],
          )
        })

        await t.test('a cancelled call is never answered, and the next one is', async (t) => {
          received.length = 0
          log.length = 0
          const controller = new AbortController()
          const onprogress = () => controller.abort(new Error('enough'))
          const options = { onprogress, signal: controller.signal, timeout: PATIENCE }
          await t.rejects(client.callTool(long(GIVEN_UP, 5 * GIVEN_UP), options), { message: /enough/ })
          t.match(await client.callTool(sum), five)
          // As long as the call would have taken.
          await client.callTool(long(GIVEN_UP, 1), { timeout: PATIENCE })
          t.equal(received.filter(isAnswer).length, 2)
          // Of a bridge on a pipe the log may come late: lines of the calls before may be among these.
          const ended = (name: string, outcome: string) =>
            log.filter((line) => line['event'] === 'call' && line['name'] === name && line['outcome'] === outcome)
              .length
          await until(
            () => ended('get-sum', 'ok') > 0 && ended('trigger-long-running-operation', 'cancelled') > 0,
            'the log of both calls',
          )
          t.equal(ended('get-sum', 'ok'), 1)
          t.equal(ended('trigger-long-running-operation', 'cancelled'), 1)
        })

        await t.test('only a call with a log level gets log messages, and none that is less severe', async (t) => {
          const toggle = { name: 'toggle-simulated-logging' }
          const during = long(LOG_INTERVAL + 0.5, 1)
          // Right away the server logs once, and unless it is told better, whatever the level.
          t.strictSame(await logsDuring(connected, toggle), [])
          const logs = await logsDuring(connected, during, 'debug')
          t.ok(logs.length > 0)
          t.ok(logs.every(({ level, data }) => LEVELS.includes(level) && /level.message/i.test(data)))
          t.strictSame(await logsDuring(connected, during), [])
          const severe = await logsDuring(connected, during, 'error')
          t.ok(severe.every(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf('error')))
          t.strictSame(await logsDuring(connected, toggle), [])
        })
      }),
    ),
  )
}

interface LogMessage {
  level: string
  data: string
}

/** What the client's handler is given of the server's log while a call runs. */
async function logsDuring({ client }: Connected, call: { name: string }, level?: string): Promise<LogMessage[]> {
  const logs: LogMessage[] = []
  client.setNotificationHandler('notifications/message', ({ params }) => {
    logs.push({ level: params.level, data: String(params.data) })
  })
  await client.callTool({ ...call, ...(level !== undefined && { _meta: { [LOG_LEVEL_META_KEY]: level } }) })
  return logs
}

function isAnswer(message: JSONRPCMessage): boolean {
  return 'result' in message || 'error' in message
}
