/**
 * Works around a bug of @redis/client 6.3: a client that is destroyed while it connects connects anyway. When Redis later closes
 * the connection, the client keeps sending pings until the process ends. The library's clients for Sentinels and Clusters
 * destroy clients in this way when a primary is replaced.
 */
import { createClient } from '@redis/client'

interface Destroyable {
  destroy(): void
  once(event: 'ready', listener: () => void): void
}

/** Patches the library, so that a destroyed client does not stay connected. Must be called once. */
export function endDestroyedClients(): void {
  const prototype = ownerOf(createClient(), 'destroy') as Destroyable
  const { destroy } = prototype
  prototype.destroy = function (this: Destroyable) {
    destroy.call(this)
    this.once('ready', () => destroy.call(this))
  }
}

/** The object in the prototype chain that has this own property. */
export function ownerOf(object: object, name: string): object {
  return Object.hasOwn(object, name) ? object : ownerOf(Object.getPrototypeOf(object), name)
}
