/**
 * Works around a bug of @redis/client 6: a client that is destroyed while it connects is connected all the same, and
 * when Redis then closes the connection, the client sends pings into nothing until the process ends. The library's
 * clients for Sentinels and for a Cluster destroy such clients themselves when a primary is replaced.
 */
import { createClient } from '@redis/client'

interface Destroyable {
  destroy(): void
  once(event: 'ready', listener: () => void): void
}

/** From now on a destroyed client does not stay connected. To be called once. */
export function endDestroyedClients(): void {
  const prototype = ownerOf(createClient(), 'destroy') as Destroyable
  const { destroy } = prototype
  prototype.destroy = function (this: Destroyable) {
    destroy.call(this)
    this.once('ready', () => destroy.call(this))
  }
}

/** The object in the chain of prototypes that has this property itself. */
function ownerOf(object: object, name: string): object {
  return Object.hasOwn(object, name) ? object : ownerOf(Object.getPrototypeOf(object), name)
}
