/** How hosts with addresses of both families are reached. */
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

/**
 * Options of `net.connect` and `tls.connect`: tries the addresses of a host one after another. An attempt gets two
 * seconds, because a system repeats a lost SYN after one; by default Node.js gives up after a quarter of a second.
 */
export const ONE_AFTER_THE_OTHER = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 2_000 }

/** The same, over IPv4 only. */
export const IPV4_ONLY = { family: 4, autoSelectFamily: false }

/** Sets the same time for the connections that packages make in this process, for example to Redis. */
export function waitForEachAddress(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(ONE_AFTER_THE_OTHER.autoSelectFamilyAttemptTimeout)
}
