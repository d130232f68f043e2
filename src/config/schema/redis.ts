/** `redis`: where replicas of the bridge share state, and the prefix of all keys and channels. */
import * as z from 'zod'
import { redisAddressIssue } from '../redis-address.js'
import { milliseconds, text } from './values.js'

const address = z.url({ abort: true, error: ({ input }) => redisAddressIssue(String(input)) }).check((context) => {
  const message = redisAddressIssue(context.value)
  if (message !== undefined) context.issues.push({ code: 'custom', message, input: context.value })
})

export const redis = z
  .strictObject({
    url: address
      .optional()
      .describe(
        'Address of Redis, with user and password (percent-encoded) if it requires them, and the number of a database as its path: rediss://user:password@redis:6379/1. With "sentinels", the host is the name of the primary: redis://:password@mymaster.',
      ),
    sentinels: z
      .array(address)
      .default([])
      .describe(
        'Addresses of Redis Sentinels, such as redis://sentinel-1:26379. The bridge asks them for the primary.',
      ),
    cluster: z
      .array(address)
      .default([])
      .describe(
        'Addresses of nodes of a Redis Cluster, instead of "url", such as redis://:password@node-1:6379. The bridge learns the other nodes from them.',
      ),
    ca: text
      .optional()
      .describe(
        'PEM file with the CA certificates to trust for Redis, instead of the public ones. For rediss:// addresses.',
      ),
    cert: text
      .optional()
      .describe('PEM file with the certificate that the bridge shows Redis (mutual TLS). Requires "key".'),
    key: text.optional().describe('PEM file with the private key of "cert", without a passphrase.'),
    prefix: z.string().default('mcp-bridge:').describe('Prefix of all keys and channels.'),
    timeout: milliseconds.default(250).describe('Timeout of one command, in milliseconds.'),
  })
  .optional()
  .describe(
    'Redis with the state that replicas of the bridge share. Requires stateKeys. Default: the bridge runs alone.',
  )
