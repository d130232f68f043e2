/** What checks tokens of identity providers. Its code is loaded if any are configured. */
import type { Log } from '../base/log/events.js'
import { directIssuers, isOnBehalf, isStdio, requestedScopes, type Settings } from '../config/settings.js'
import type { IssuerState } from '../mcp/ports/events.js'
import type { Verifier, VerifierOptions } from '../services/oauth/server/verifier.js'
import type { BridgeContext } from './context.js'
import type { FrontOptions } from './http-app.js'

type Context = Pick<BridgeContext, 'signIn' | 'replicas' | 'log'>

/** It stays, with keys and checked tokens, until the configuration of the providers changes. */
export class TokenIssuers {
  readonly #context: Context
  #now: { plan: string; verifier: Verifier } | undefined

  constructor(context: Context) {
    this.#context = context
  }

  /** Whether the keys of identity providers can be had. */
  get states(): readonly IssuerState[] {
    return this.#now?.verifier.states ?? []
  }

  /** What checks tokens; undefined if no identity providers are configured. */
  async verifierFor({ auth, oauth: { allow }, mcpServers }: Settings): Promise<Verifier | undefined> {
    const issuers = auth?.issuers
    const shows = Object.values(mcpServers).some((own) => !isStdio(own) && own.oauth && isOnBehalf(own.oauth))
    const plan = issuers && JSON.stringify([issuers, allow, shows])
    if (this.#now?.plan === plan) return this.#now?.verifier
    const next =
      issuers && plan !== undefined ? { plan, verifier: await this.#make({ issuers, allow, shows }) } : undefined
    this.#now?.verifier.close()
    this.#now = next
    // Nobody waits: without keys, requests are answered with 503 until they are there.
    next?.verifier.prepare().catch(() => {})
    return next?.verifier
  }

  async #make(options: Pick<VerifierOptions, 'issuers' | 'allow' | 'shows'>): Promise<Verifier> {
    const { Verifier } = await import('../services/oauth/server/verifier.js')
    const { signIn, replicas, log } = this.#context
    return new Verifier({ ...options, network: signIn?.network, shared: replicas?.records, report: reportTo(log) })
  }

  stop(): void {
    this.#now?.verifier.stop()
  }
}

/** The facade in front of an identity provider, if there is one. */
export function facadeOf(verifier: Verifier | undefined, { auth }: Settings): FrontOptions['facade'] {
  const facade = verifier?.facade
  return (
    facade && {
      scopes: requestedScopes(auth),
      alone: directIssuers(auth).length === 1,
      register: (asked) => facade.register(asked),
      authorize: (query) => facade.authorize(query),
      token: (form, from) => facade.token(form, from),
    }
  )
}

/** A report for the log. `issuer_unavailable` is once until the keys can be had. */
function reportTo(log: Pick<Log, 'info' | 'warn'>): NonNullable<VerifierOptions['report']> {
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
