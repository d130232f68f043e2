/** Values that follow from several options together. */

import { withoutBrackets } from '../base/texts/parse-url.js'
import { isLoopback, type Listen, parseListen } from './addresses.js'
import { defaultsOfSignIn } from './defaults.js'
import { forwardedTo } from './forwarding.js'
import { addressesOf, isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'
import type { HttpSettings, ServerSettings } from './schema/server.js'
import type { OAuthSettings } from './schema/sign-in.js'

/** How the bridge gets the credentials for a server. `account` says whose they are; with `apiKey`, people enter them. */
type SignInSettings = Omit<OAuthSettings, 'account'> & {
  account: 'principal' | 'service'
  apiKey?: HttpSettings['account']
}

/**
 * How the bridge signs in to a server; undefined if it does not: for programs, for servers with a configured credential, and
 * if clients bring their own credentials.
 */
export function signInOf(own: ServerSettings, settings: Callers): SignInSettings | undefined {
  if (!isStdio(own) && own.account) return { ...defaultsOfSignIn(), account: 'principal', apiKey: own.account }
  // Tokens belong to an address. A socket has none, and a list has several.
  if (
    isStdio(own) ||
    own.socket !== undefined ||
    addressesOf(own).length > 1 ||
    own.oauth === false ||
    settings.auth?.passthrough
  )
    return undefined
  if (Object.keys(own.headers).some((name) => name.toLowerCase() === 'authorization')) return undefined
  // Callers bring their own credentials, as far as nothing else is configured.
  if (own.oauth === undefined && forwardedTo(own).length > 0) return undefined
  const given = own.oauth ?? defaultsOfSignIn()
  const account = given.account ?? usualAccount(given)
  const isShared = own.session === 'shared' && hasSeveral(settings)
  // A session of several principals cannot send the tokens of one of them.
  return account === 'principal' && isShared ? undefined : { ...given, account }
}

/** Whether the bridge signs in to a server, if the server asks for it. */
export function signsIn(settings: Settings): boolean {
  return Object.values(settings.mcpServers).some((own) => signInOf(own, settings) !== undefined)
}

/** Whose tokens are sent, if the configuration does not say. */
export function usualAccount(settings: Pick<OAuthSettings, 'grant' | 'idp'>): 'principal' | 'service' {
  return settings.grant === 'code' || settings.grant === 'device' || isOnBehalf(settings) ? 'principal' : 'service'
}

/** Whether tokens for a server are obtained in exchange for those that callers show. */
export function isOnBehalf({ grant, idp }: Pick<OAuthSettings, 'grant' | 'idp'>): boolean {
  return grant === 'token-exchange' || (grant === 'id-jag' && idp?.subjectTokenFile === undefined)
}

/**
 * Whether the bridge serves the page where people sign in to servers with their own accounts, or approve calls: there are such
 * servers, people can prove who they are, and the cookies of the page are safe.
 */
export function hasSignInPage(settings: Settings, listen: Listen): boolean {
  return (
    mayHavePage(settings, listen) &&
    Object.values(settings.mcpServers).some((own) => {
      const { account, grant } = signInOf(own, settings) ?? {}
      return (account === 'principal' && grant === 'code') || isApprovedAtPage(own)
    })
  )
}

/** Whether people approve calls of the server at the page. */
export function isApprovedAtPage({ tools }: ServerSettings): boolean {
  return tools?.approve !== undefined && tools.approveBy === 'page'
}

/** Whether people can prove who they are at a page of the bridge, and its cookies are safe. */
export function mayHavePage({ auth, publicUrl }: Settings, listen: Listen): boolean {
  if (listen.kind !== 'http' || publicUrl === undefined || !auth || auth.passthrough) return false
  const isKnownToProxy = auth.forwarded !== undefined || auth.issuers?.some(({ header }) => header !== undefined)
  if (!auth.tokens && !isKnownToProxy && !auth.browser) return false
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' || isLoopback(withoutBrackets(hostname))
}

/** The issuers at which clients sign in by themselves, and not through a proxy in front of the bridge. */
export function directIssuers(auth: Settings['auth']): NonNullable<NonNullable<Settings['auth']>['issuers']> {
  return (auth?.issuers ?? []).filter(({ header }) => header === undefined)
}

/**
 * The scopes that every token has to have, by the names by which clients request them. Where issuers differ, those of the first:
 * most clients sign in there.
 */
export function requestedScopes(auth: Settings['auth']): string[] {
  const names = new Map(Object.entries(directIssuers(auth)[0]?.scopeNames ?? {}))
  return [...new Set((auth?.scopes ?? []).map((scope) => names.get(scope) ?? scope))]
}

/** The settings that decide how many principals there can be. */
export interface Callers {
  auth?:
    | {
        passthrough: boolean
        tokens?: Readonly<Record<string, unknown>> | undefined
        issuers?: unknown
        forwarded?: unknown
      }
    | undefined
  /** An application around the bridge tells its callers apart. */
  several?: boolean | undefined
}

/** Whether there can be several principals. */
export function hasSeveral({ auth, several = false }: Callers): boolean {
  if (!auth) return several
  const { passthrough, tokens = {}, issuers, forwarded } = auth
  return passthrough || issuers !== undefined || forwarded !== undefined || Object.keys(tokens).length > 1
}

/** Whether only this machine can reach the inspector: at `admin`, or at its own address, which is a loopback address. */
export function isLocal(admin: string | undefined): boolean {
  if (admin === undefined) return true
  const listen = parseListen(admin, 'admin')
  return listen.kind === 'stdio' || isLoopback(listen.host)
}

/** Whether viewers of the inspector may call servers. */
export function isCallable({ admin, inspect }: Pick<Settings, 'admin' | 'inspect'>): boolean {
  const tries = inspect?.try ?? false
  return tries === 'loopback' ? isLocal(admin) || inspect?.tryToken !== undefined : tries
}

/** The share of each limit that one principal may use of what the others leave free. */
export function shareOf(settings: Callers & { limits: Pick<Settings['limits'], 'perPrincipal'> }): number {
  return settings.limits.perPrincipal ?? (hasSeveral(settings) ? 0.5 : 1)
}

export function secretOf(token: string | { token: string }): string {
  return typeof token === 'string' ? token : token.token
}
