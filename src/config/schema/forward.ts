/** `forward` of a server: the headers of callers that it gets. */
import * as z from 'zod'
import { headerName } from './values.js'

const taken = z.strictObject({
  as: headerName.optional().describe('The name of the header for the server. Default: the same name.'),
  require: z.boolean().default(false).describe('Refuse callers without the header, with an error that names it.'),
  replace: z
    .boolean()
    .default(false)
    .describe('Whether the header of a caller replaces the one in "headers", which callers without it use.'),
})

export const forward = z
  .record(headerName, z.union([z.literal(true), headerName, taken]))
  .default({})
  .describe(
    'Headers of callers that the server gets, such as their own API keys, by name: true, the name for the server, or an object. Callers with different values are different principals: they share no sessions, caches or tasks.',
  )
