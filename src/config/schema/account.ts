/** `account` of a server: a key of each person, which they enter on the page of the bridge. */
import * as z from 'zod'
import { headerName } from './values.js'

export const account = z
  .strictObject({
    header: headerName.describe('The header in which the server gets the key.'),
    prefix: z
      .string()
      .regex(/^[\x21-\x7e][\x20-\x7e]{0,63}$/, 'has to be visible ASCII, at most 64 characters')
      .optional()
      .describe('What comes before the key in the header, such as "Bearer ".'),
  })
  .optional()
  .describe(
    'A key of each person for this server, in place of OAuth: people enter their own once, on the page <publicUrl>/sign-in, and only their calls use it.',
  )
