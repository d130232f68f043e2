/** The page where people sign in to servers with their own accounts, as configured. Its code is loaded with the first request. */

import { keyOf, newKey } from '../base/crypto/seal.js'
import type { Log } from '../base/log/events.js'
import { tokenOwner } from '../clients/plugins/auth.js'
import { prefixOf } from '../clients/plugins/protected-resource.js'
import type { SignInRoutes } from '../clients/plugins/sign-in.js'
import { hasSignInPage, type Listen, type Settings, SIGN_IN, secretOf } from '../config/settings.js'
import type { Decisions } from '../middle/policy/approval/decisions.js'
import type { PageQuestions } from '../middle/policy/approval/page-questions.js'
import type { Accounts } from '../services/oauth/client/accounts.js'
import type { CompanyOptions } from '../services/oauth/page/company.js'
import type { Desk } from '../services/oauth/page/desk.js'
import type { SignInPage } from '../services/oauth/page/page.js'
import type { Network } from '../services/oauth/reach.js'

/** What the page needs. */
export interface SignInPageParts {
  settings: Settings
  listen: Listen
  /** All paths of endpoints. */
  paths: readonly string[]
  /** The accounts at each server, by name. */
  accounts: ReadonlyMap<string, Accounts | undefined>
  desk: Desk | undefined
  questions: PageQuestions
  decided: Decisions
  log: Log
  network: Network | undefined
}

/** Seals what browsers keep, where there are no keys for that. */
const OWN_KEY = newKey()

/** Undefined if the bridge serves no such page. From now on, the desk sends people there. */
export function signInPageOf(parts: SignInPageParts): SignInRoutes | undefined {
  const { settings, listen, paths, accounts, desk, questions, decided, log } = parts
  const { publicUrl = '', auth, stateKeys } = settings
  if (!hasSignInPage(settings, listen)) {
    if (desk) desk.place = undefined
    return undefined
  }
  if (!desk) throw new Error('The code of the page is not loaded')
  const { origin, pathname } = new URL(publicUrl)
  const address = origin + prefixOf(pathname, paths) + SIGN_IN
  const keys = stateKeys.length > 0 ? stateKeys.map(keyOf) : [OWN_KEY]
  desk.place = { address, keys }
  const tokens = Object.entries(auth?.tokens ?? {}).map(([name, token]) => [name, secretOf(token)] as const)
  const servers = [...accounts].flatMap(([name, one]) => (one?.isPersonal ? [[name, one] as const] : []))
  const load = async () => {
    const { SignInPage } = await import('../services/oauth/page/page.js')
    return new SignInPage({
      address,
      keys,
      desk,
      questions,
      decided,
      servers: new Map(servers),
      company: await companyOf(parts, `${address}/browser/callback`),
      ownerOf: tokens.length > 0 ? tokenOwner(Object.fromEntries(tokens)) : undefined,
      log,
    })
  }
  let page: Promise<SignInPage> | undefined
  return {
    path: SIGN_IN,
    answer: async (request) => {
      page ??= load()
      return (await page).answer(request)
    },
  }
}

async function companyOf({ settings, network }: SignInPageParts, redirectUri: string) {
  const { auth, oauth } = settings
  const { browser, issuers = [] } = auth ?? {}
  const issuer = issuers.find((one) => browser?.issuer === undefined || one.issuer === browser.issuer)
  if (!browser || !issuer) return undefined
  const { Company } = await import('../services/oauth/page/company.js')
  const { clientId, clientSecret, scopes } = browser
  const options: CompanyOptions = {
    ...issuer,
    clientId,
    clientSecret,
    scopes,
    redirectUri,
    allow: oauth.allow,
    network,
  }
  return new Company(options)
}
