/** `replicas`: how replicas of the bridge reach each other. */
import * as z from 'zod'

export const replicas = z
  .strictObject({
    address: z
      .url({
        protocol: /^https?$/,
        error: 'has to be an address without a path, such as http://10.0.0.5:8090',
      })
      .regex(/^https?:\/\/[^/@?#]+\/?$/, 'has to be an address without a path, such as http://10.0.0.5:8090')
      .optional()
      .describe(
        'Address at which this replica listens and the other replicas reach it. Requests are signed with stateKeys; with https:// they are also encrypted, with a key derived from stateKeys. Host [::]: all addresses of this machine; 0.0.0.0: those of IPv4. Default: a free port, on the loopback address if "listen" is on it, otherwise on the address of this machine.',
      ),
  })
  .prefault({})
  .describe('How replicas of the bridge reach each other. Used with "redis".')
