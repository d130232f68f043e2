/** Tells whether a host is on the public Internet, by the addresses that it has now. */
import { type ConnectOptions, routeTo, targetOf } from '../base/net/connect.js'
import { Failure } from '../base/net/failure.js'
import { Guard } from '../base/net/guard.js'

/** Why an address is not public; undefined if it is. */
export function publicHosts(resolve: ConnectOptions['resolve']): (url: URL) => Promise<string | undefined> {
  const guard = new Guard()
  return async (url) => {
    try {
      await routeTo(targetOf(url), { guard, resolve })
      return undefined
    } catch (error) {
      if (error instanceof Failure) return error.message
      throw error
    }
  }
}
