/** Logs that keys of an identity provider cannot be had, that they can be had again, and that there are too many. */
import type { Log } from '../base/log/events.js'
import type { VerifierOptions } from '../services/oauth/server/verifier.js'

/** A report for the log. `issuer_unavailable` is once until the keys can be had. */
export function issuerReport(log: Pick<Log, 'info' | 'warn'>): NonNullable<VerifierOptions['report']> {
  let wasDown: ReadonlySet<string> = new Set()
  return ({ issuer, state, why, leftOut }) => {
    if (state === 'down')
      log.warn({ event: 'issuer_unavailable', issuer, why }, 'the keys of an identity provider cannot be had')
    else if (wasDown.has(issuer)) log.info({ event: 'issuer_available', issuer }, 'the keys can be had again')
    wasDown = new Set([...wasDown].filter((one) => one !== issuer).concat(state === 'down' ? [issuer] : []))
    if (leftOut > 0)
      log.warn(
        { event: 'issuer_keys_left_out', issuer, leftOut },
        'an identity provider has more keys than the bridge keeps: tokens with the others are refused',
      )
  }
}
