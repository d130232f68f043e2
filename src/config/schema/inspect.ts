/** Options of the inspector. */
import * as z from 'zod'
import { count } from './values.js'

/** The default address of the inspector, if `admin` is not set. */
export const INSPECT_ADDRESS = 'http://127.0.0.1:9091'

/** The characters of bearer tokens (RFC 6750, section 2.1) that no program encodes after the # of an address. */
const token = z
  .string()
  .regex(
    /^[A-Za-z0-9._~+=-][A-Za-z0-9._~+/=-]{15,}$/,
    'has to be 16 or more letters, digits and characters of ._~+/=- and cannot begin with /, because it stands after # in an address',
  )
  .optional()

export const inspect = z
  .strictObject({
    payloads: z
      .enum(['off', 'errors', 'all'])
      .default('off')
      .describe(
        'Which messages are kept as text, up to 16 KiB each: none (off), those of failed calls (errors), or all. Values that may be secret are hidden from readers.',
      ),
    callsPerSecond: count
      .default(2_000)
      .describe(
        'Most calls recorded in a second. Of further calls, only failures, without messages, and the number are recorded.',
      ),
    hide: z
      .array(z.string().startsWith('/', 'has to begin with /'))
      .default([])
      .describe(
        'JSON Pointers of values to hide in addition to those with names like "token" or "password". * stands for one name, ** for any number of names: /params/arguments/**/iban.',
      ),
    token: token.describe(
      'The token of viewers. Required if other machines can reach "admin". Default: a new one at each start, which is printed with the address on a terminal.',
    ),
    try: z
      .union([z.boolean(), z.literal('loopback')])
      .default(false)
      .describe(
        'Let viewers call servers from the page, as the principal "inspector": true, false, or "loopback", which means true if only this machine can reach the inspector. The flag --inspect sets "loopback".',
      ),
    tryToken: token.describe(
      'The token of viewers who may also call servers; those with "token" then can only look. Required with "try": true if other machines can reach "admin". Default: the value of "token".',
    ),
  })
  .optional()
  .describe(
    `Show both sides of each call at /inspect of "admin", by default of ${INSPECT_ADDRESS}; on stdio, to mcp-bridge inspect and tail. Default: off.`,
  )
