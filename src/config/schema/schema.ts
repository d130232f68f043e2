/**
 * The reference of all options: types, defaults and descriptions. `npm run schema` writes config/mcp-bridge.schema.json and
 * pages of docs/reference from it, and `mcp-bridge help` shows the same descriptions.
 */
import * as z from 'zod'
import { access } from './access.js'
import { audit } from './audit.js'
import { discovery } from './discovery.js'
import { groups } from './groups.js'
import { inspect } from './inspect.js'
import { limits } from './limits.js'
import { lists } from './lists.js'
import { redis } from './redis.js'
import { replicas } from './replicas.js'
import { server } from './server.js'
import { oauth } from './sign-in.js'
import { timeouts } from './timeouts.js'
import { entryName } from './values.js'

export const fileSchema = z.strictObject({
  $schema: z.string().optional().describe('Address of the JSON Schema of this file, for editors.'),
  mcpServers: z
    .record(entryName, server)
    .default({})
    .describe('Servers by name, as in the configuration of Claude Desktop, Cursor and others.'),
  groups,
  lists,
  ...discovery,
  ...access,
  oauth,
  audit,
  redis,
  replicas,
  workers: z
    .union([z.int().min(1).max(256), z.literal('auto')])
    .default(1)
    .describe(
      'Processes that serve together. "auto": as many as CPUs that the bridge may use. Bounds of "limits" are divided among them.',
    ),
  stateKeys: z
    .array(z.string().min(32, 'has to have at least 32 characters'))
    .default([])
    .describe(
      'Secrets of 32 or more characters that seal the state that clients keep for the bridge. The first one seals; all of them can open. Default: a new one at each start.',
    ),
  metrics: z.boolean().default(true).describe('Serve Prometheus metrics.'),
  metricsTools: z
    .int()
    .min(0)
    .max(1_000)
    .default(0)
    .describe(
      'Most tools of a server that appear by name in the label "tool" of metrics. Further tools, and names that the server has not listed, are "other". 0: no such label.',
    ),
  inspect,
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('Least severe level that is logged.'),
      format: z
        .enum(['auto', 'pretty', 'json'])
        .default('auto')
        .describe('Format of the log. "auto" is readable on a terminal and JSON otherwise.'),
      calls: z
        .enum(['all', 'failed', 'none'])
        .default('all')
        .describe(
          'Which calls get a line when they end. "failed": only those with an error of the tool, the server or the bridge.',
        ),
    })
    .prefault({})
    .describe('The log, on stderr.'),
  compat: z
    .strictObject({
      bareDiscover: z
        .boolean()
        .default(true)
        .describe('Answer server/discover without the version header and without _meta.'),
      ignoreVersionSkew: z
        .boolean()
        .default(true)
        .describe('Accept a legacy MCP-Protocol-Version header other than the negotiated revision.'),
      draftErrorCodes: z
        .boolean()
        .default(false)
        .describe('Send the error codes of the drafts of 2026-07-28 (-32001, -32003, -32004).'),
      emulateTasks: z
        .boolean()
        .default(false)
        .describe('Offer tool calls of modern servers as tasks to clients of 2025-11-25.'),
      strictRevisions: z
        .boolean()
        .default(false)
        .describe('Remove from answers whatever is not in the schema of the revision of a legacy client.'),
    })
    .prefault({})
    .describe('Compatibility with peers that deviate from the specification.'),
  limits,
  timeouts,
})

export type Settings = z.infer<typeof fileSchema>
