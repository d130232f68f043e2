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
        'Where this replica listens for the others, which must reach it there. Requests are signed with stateKeys; with https:// they are also encrypted, with a key made of stateKeys. Host 0.0.0.0: every address of this machine. Default: any free port, on the loopback if "listen" is there, else on the address of this machine.',
      ),
  })
  .prefault({})
  .describe('How replicas of the bridge reach each other. For "redis".')
