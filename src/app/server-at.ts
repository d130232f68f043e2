/** Makes the server of an entry: at its address, or at each of several. */
import type { ServerSettings } from '../config/settings.js'
import { AddressedServer } from '../servers/addressed.js'
import type { ServerOptions } from '../servers/options.js'
import { Server, type UpstreamServer } from '../servers/server.js'
import { TaskOwners } from '../servers/task-owners.js'
import type { BridgeContext } from './context.js'
import type { Reaching } from './server-options.js'
import { severalOf } from './several.js'

/** `optionsAt` makes the options of the server at one address. */
export function serverAt(
  own: ServerSettings,
  context: BridgeContext,
  optionsAt: (more: Pick<Reaching, 'address' | 'shown' | 'several'>) => ServerOptions,
): UpstreamServer {
  const several = severalOf(own, context)
  if (!several) return new Server(optionsAt({}))
  const { shown, ...found } = several
  const whole = optionsAt({ shown })
  const tasks = new TaskOwners(whole)
  return new AddressedServer({
    ...found,
    staying: own.session === 'per-principal',
    log: context.log.child({ server: whole.name }),
    make: (name, reached) =>
      name === undefined
        ? new Server(whole)
        : new Server(
            optionsAt({ address: several.named.get(name), several: { isOneOfSeveral: true, reached } }),
            tasks,
          ),
  })
}
