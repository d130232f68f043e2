/** Options about time: how long the bridge waits for servers, clients and itself. */
import * as z from 'zod'
import { milliseconds } from './values.js'

/** Timeouts that an entry of a server may set for that server. */
const serverTimes = {
  call: milliseconds.describe('Idle timeout of a call, in milliseconds. Progress resets it.'),
  callTotal: milliseconds.describe('Total timeout of a call, in milliseconds, with or without progress.'),
  probe: milliseconds.describe(
    'Timeout of server/discover during era detection, in milliseconds. Default: 10000 over HTTP, 15000 on stdio.',
  ),
  initialize: milliseconds.describe(
    'Timeout of initialize, in milliseconds. If server/discover has timed out over HTTP, timeouts.probe applies instead.',
  ),
  start: milliseconds.describe(
    'Most time for a program to start, in milliseconds. The bridge waits this long only while the program writes to stderr or stdout within each timeouts.initialize, or if its command downloads programs (npx, uvx, docker and others).',
  ),
  startWait: milliseconds.describe(
    'Milliseconds that a request waits for a program to start before it gets the error "The server is starting". A request with a progress token gets progress instead and keeps waiting.',
  ),
  reuse: milliseconds.describe(
    'Milliseconds for which a session or program stays after its last client has left, for the next equal client. Less if timeouts.clientGone is less.',
  ),
  idle: milliseconds.describe(
    'Idle timeout of a session with a server, in milliseconds. Default: 600000 over HTTP; for a program, timeouts.clientIdle, while no client is connected, or with "start": "lazy".',
  ),
  answer: z
    .number()
    .int()
    .min(1_000)
    .max(3_600_000)
    .describe(
      'Timeout of a request from the server to the client during a call (elicitation, sampling, roots), in milliseconds. Also the longest time that a modern server may keep a legacy client waiting by asking to be called again.',
    ),
}

/** `timeouts` in the entry of a server. */
export const timeoutsOfServer = z
  .strictObject(
    Object.fromEntries(Object.entries(serverTimes).map(([name, time]) => [name, time.optional()])) as {
      [name in keyof typeof serverTimes]: z.ZodOptional<(typeof serverTimes)[name]>
    },
  )
  .default({})
  .describe('Timeouts of this server, in milliseconds. Default: those of "timeouts".')

/** `timeouts` of the bridge. */
export const timeouts = z
  .strictObject({
    call: serverTimes.call.default(300_000),
    callTotal: serverTimes.callTotal.default(3_600_000),
    probe: serverTimes.probe.optional(),
    initialize: serverTimes.initialize.default(60_000),
    start: serverTimes.start.default(300_000),
    startWait: serverTimes.startWait.default(50_000),
    reuse: serverTimes.reuse.default(60_000),
    idle: serverTimes.idle.optional(),
    answer: serverTimes.answer.default(600_000),
    firstList: milliseconds
      .default(20_000)
      .describe(
        'Milliseconds that a list of a group waits for a server of which the bridge knows no list for the caller. The option "wait" of a group replaces it.',
      ),
    clientIdle: milliseconds
      .default(1_800_000)
      .describe(
        'Idle timeout of the session of a legacy client, in milliseconds: without a request and without an open stream.',
      ),
    clientGone: milliseconds
      .default(300_000)
      .describe(
        'Idle timeout of the session of a legacy client that has closed its stream for messages of the server, in milliseconds.',
      ),
    keepAlive: milliseconds
      .default(15_000)
      .describe('Interval of keep-alive comments on an idle stream, in milliseconds.'),
    write: milliseconds
      .default(30_000)
      .describe(
        'Timeout of a write, in milliseconds. The bridge closes the connection of a client that has not read anything for this long.',
      ),
    commitAfter: milliseconds
      .default(10_000)
      .describe('Milliseconds without a result after which the response to a call becomes an event stream.'),
    drainDelay: z
      .number()
      .int()
      .nonnegative()
      .default(0)
      .describe('Milliseconds for which the bridge keeps serving after SIGTERM while /readyz fails.'),
    drainTimeout: milliseconds
      .default(25_000)
      .describe(
        'Milliseconds for calls in flight to end after timeouts.drainDelay, or on stdio after the end of the input.',
      ),
  })
  .prefault({})
  .describe('Timeouts and intervals, in milliseconds.')
