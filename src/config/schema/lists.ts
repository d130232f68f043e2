/** `lists`: whether what servers list survives a restart of the bridge. */
import * as z from 'zod'

export const lists = z
  .enum(['kept', 'memory'])
  .optional()
  .describe(
    'Where groups remember what their servers listed last: "memory", or "kept" beyond a restart, in files that only the user of the bridge can read, and in Redis with "redis". Default: kept with "redis", and if "listen" is stdio, a unix socket or a loopback address; else memory.',
  )
