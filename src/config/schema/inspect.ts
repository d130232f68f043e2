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
        "Whose messages are kept as text, up to 16 KiB each: nobody's, those of calls that failed, or all. Values that may be secret are hidden when somebody reads them.",
      ),
    callsPerSecond: count
      .default(2_000)
      .describe(
        'Most calls that are recorded within a second. Of further ones only failures are shown, without messages, and how many there were.',
      ),
    hide: z
      .array(z.string().startsWith('/', 'has to begin with /'))
      .default([])
      .describe(
        'JSON Pointers of values to hide beside those with names like "token" or "password". * stands for one name, ** for any number: /params/arguments/**/iban.',
      ),
    token: token.describe(
      'The token that viewers need. Required if "admin" can be reached from other machines. Default: a new one at each start, which is printed with the address on a terminal.',
    ),
    try: z
      .union([z.boolean(), z.literal('loopback')])
      .default(false)
      .describe(
        'Let viewers call servers from the page, as the principal "inspector": true, false, or "loopback", which is true if only this machine can reach the inspector. The flag --inspect says "loopback".',
      ),
    tryToken: token.describe(
      'The token that viewers need to call servers; they can look with it, too. With it, "token" is for looking only. Required with "try": true if "admin" can be reached from other machines. Default: the token of viewers.',
    ),
  })
  .optional()
  .describe(
    `Show both sides of each call at /inspect of "admin", or else of ${INSPECT_ADDRESS}; on stdio, to mcp-bridge inspect and tail. Default: nothing is kept.`,
  )
