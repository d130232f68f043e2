/** Options about size and number: the bounds of everything that grows. */
import * as z from 'zod'
import { toolLimit } from './audit.js'
import { count } from './values.js'

const MEBIBYTE = 1024 * 1024

/** `limits` of the bridge. */
export const limits = z
  .strictObject({
    bodyBytes: count.default(4 * MEBIBYTE).describe('Largest request over HTTP, in bytes.'),
    lineBytes: count.default(16 * MEBIBYTE).describe('Longest line on stdio, in bytes.'),
    answerBytes: count
      .default(16 * MEBIBYTE)
      .describe('Largest JSON response of a server, and largest event of a stream, in bytes.'),
    streamBytes: count.default(64 * MEBIBYTE).describe('Largest event stream of a server, in bytes.'),
    memory: z
      .number()
      .int()
      .min(MEBIBYTE)
      .optional()
      .describe('Bytes of all messages over 16 KiB that the bridge holds at one time. Default: a quarter of the heap.'),
    connections: count.default(12_000).describe('Open connections of clients.'),
    calls: count.default(2_000).describe('Calls in flight.'),
    callsPerServer: count.default(256).describe('Calls in flight with one server.'),
    subscriptions: count.default(10_000).describe('Open subscriptions: subscriptions/listen.'),
    clientSessions: count
      .default(10_000)
      .describe('Sessions of legacy clients with one server, for each of Streamable HTTP and HTTP+SSE.'),
    perPrincipal: z
      .number()
      .positive()
      .max(1)
      .optional()
      .describe(
        'Share of each limit that one principal may use of what the others leave free, from 0 to 1. Default: 0.5, or 1 if there can be only one principal.',
      ),
    requestsPerMinute: count
      .optional()
      .describe(
        'HTTP requests of one principal in a minute; of callers without a principal, from one address. Replicas count together. Default: no limit.',
      ),
    wrongTokensPerMinute: count
      .default(60)
      .describe(
        'Requests with a wrong token from one address in a minute. Further ones get 429 instead of 401. Requests with a valid token are not affected. Ignored with auth.passthrough.',
      ),
    tools: z
      .array(toolLimit)
      .default([])
      .describe(
        'Limits on how often tools may be called. Only calls that are sent to a server count. Replicas count together.',
      ),
    parked: count.default(2_000).describe('Calls to one server that wait for an answer of a modern client.'),
    parkedPerPrincipal: count
      .default(32)
      .describe('Calls of one principal to one server that wait for an answer of a modern client.'),
    sessions: count
      .default(10_000)
      .describe(
        'Sessions with one HTTP server: each legacy client of a legacy server has one, as has each modern application of a principal. At the limit, a new session ends the one that has been idle longest.',
      ),
    instructionBytes: count
      .default(16 * 1024)
      .describe('Longest instructions of a group, in bytes. If those of its servers are longer together, each is cut.'),
    processes: count
      .default(16)
      .describe('Processes of one stdio server. At the limit, a new process ends the one that has been idle longest.'),
    startsPerMinute: count
      .default(60)
      .describe(
        'Processes of one stdio server that the bridge starts in a minute for one principal, after a burst of limits.processes. Ignored with "session": "per-request".',
      ),
  })
  .prefault({})
  .describe('Bounds. Sizes are in bytes.')
