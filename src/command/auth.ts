/** Runs `mcp-bridge login`, `logout` and `auth status`. */

import { Fault } from '../base/fault/fault.js'
import { printable, printableLines } from '../base/texts/printable.js'
import { canonical, httpEndpoint } from '../config/endpoint.js'
import type { Settings } from '../config/settings.js'
import type { Accounts } from '../services/oauth/client/accounts.js'
import { explainSignIn, listAccounts, signInRows, statusLines } from '../services/oauth/client/explain.js'
import type { TokenStore } from '../services/oauth/store/store.js'
import type { CommandOutput } from './discover.js'

/** A server that requires a sign-in. */
export interface SignInTarget {
  name: string
  /** Undefined if the bridge does not sign in to it: a program, or a server with a configured credential. */
  accounts: Accounts | undefined
  /** Sends a request whose refusal names the server's requirements. */
  ask(): Promise<unknown>
}

const LOCAL = 'local'

/** Signs in to a server. `typed` is the person's input meanwhile, line by line. Rejects with a Fault. */
export async function runLogin(
  { name, accounts, ask }: SignInTarget,
  output: CommandOutput,
  typed: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<void> {
  if (!accounts) throw notOne(name)
  const { settings } = accounts
  if (settings.grant === 'token')
    throw new Fault('authFailed', `"${name}" has its token from "oauth.tokenFile": write the token into that file`)
  if (accounts.onBehalf)
    throw new Fault(
      'authFailed',
      `"${name}" is called on behalf of callers, in exchange for their tokens: nobody signs in`,
    )
  if (settings.apiKey) throw ofPersons(name, accounts)
  // Its refusal names the requirements. If it is unreachable, the next step fails.
  const isOpen = await ask().then(
    (verdict) => verdict !== undefined,
    () => false,
  )
  const account = accounts.of(LOCAL)
  output.err(`Signing in to ${printable(name, 100)} …\n`)
  readPasted(typed, (text) => account.paste(text), output).catch(() => {})
  const status = await account.login(undefined, signal).catch((error: unknown) => {
    throw isOpen ? notNeeded(name, Fault.from(error)) : error
  })
  const told = statusLines(status, Date.now()).map((line) => `  ${line}\n`)
  output.out(`Signed in to ${printable(name, 100)}\n${told.join('')}`)
}

/** A browser on another machine cannot reach the redirect URI; the person pastes the final address here. */
async function readPasted(
  lines: AsyncIterable<string>,
  paste: (text: string) => Promise<boolean>,
  output: CommandOutput,
): Promise<void> {
  for await (const line of lines) {
    if (line.trim() === '') continue
    if (!(await paste(line)))
      output.err('This address does not belong to this sign-in. Paste the whole address of the last page.\n')
  }
}

/** Deletes the tokens of a server, or all. Resolves to whether there were any. */
export async function runLogout(
  target: SignInTarget | undefined,
  store: TokenStore,
  output: CommandOutput,
): Promise<boolean> {
  if (target) {
    if (!target.accounts) throw notOne(target.name)
    if (target.accounts.settings.apiKey) throw ofPersons(target.name, target.accounts)
    const { found, revoked } = await target.accounts.of(LOCAL).logout()
    const said = revoked
      ? 'The authorization server has revoked the tokens.'
      : 'The authorization server was not asked to revoke them.'
    output.out(
      found
        ? `Signed out of ${printable(target.name, 100)}. ${said}\n`
        : `Not signed in to ${printable(target.name, 100)}.\n`,
    )
    return found
  }
  const listed = await store.list()
  for (const { key, record } of listed) if (record) await store.remove(key)
  const removed = listed.filter(({ record }) => record !== undefined).length
  output.out(
    `Forgot ${removed} account${removed === 1 ? '' : 's'}. The authorization servers were not asked to revoke the tokens.\n`,
  )
  for (const { refusal } of listed) if (refusal !== undefined) output.err(`${printable(refusal, 500)}\n`)
  return listed.every(({ refusal }) => refusal === undefined)
}

/** Shows the current sign-ins, without secrets. */
export async function runAuthStatus(
  settings: Settings | undefined,
  store: TokenStore,
  output: CommandOutput,
  json: boolean,
): Promise<boolean> {
  const { accounts, refusals } = await listAccounts(store, Date.now())
  const names = new Map(
    Object.entries(settings?.mcpServers ?? {}).flatMap(([name, entry]) =>
      typeof entry['url'] === 'string' && entry['socket'] === undefined
        ? [[canonical(httpEndpoint(entry['url'])), name]]
        : [],
    ),
  )
  const wanted = settings === undefined ? accounts : accounts.filter(({ endpoint }) => names.has(endpoint))
  // A query may be secret.
  const visible = (endpoint: string) => endpoint.replace(/\?.*$/s, '')
  if (json) {
    const told = wanted.map((status) => ({
      server: names.get(status.endpoint),
      ...status,
      endpoint: visible(status.endpoint),
    }))
    output.out(`${printableLines({ accounts: told, refusals })}\n`)
    return refusals.length === 0
  }
  if (wanted.length === 0) output.out('Signed in to no server.\n')
  for (const status of wanted) {
    const name = names.get(status.endpoint)
    const title = name === undefined ? visible(status.endpoint) : `${name}  ${visible(status.endpoint)}`
    output.out(
      `${printable(title, 300)}\n${statusLines(status, Date.now())
        .map((line) => `  ${line}\n`)
        .join('')}`,
    )
  }
  for (const refusal of refusals) output.err(`${printable(refusal, 500)}\n`)
  return refusals.length === 0
}

/** The output of `probe` for a server that requires a sign-in. Rejects with a Fault. */
export async function describeSignIn(accounts: Accounts, fault: Fault, target: string, json: boolean): Promise<string> {
  if (accounts.settings.apiKey) throw ofPersons(accounts.loginName, accounts)
  const explanation = await explainSignIn(accounts, fault.signInFor)
  if (json) return printableLines({ signIn: explanation })
  return [
    target,
    '  requires you to sign in',
    ...signInRows(explanation).map(([label, text]) => `  ${label.padEnd(11)}${text}`),
    `  next       mcp-bridge login ${accounts.loginName}`,
  ].join('\n')
}

/** Why a server that answers without a sign-in has none. */
function notNeeded(name: string, fault: Fault): Fault {
  if (fault.fault === 'signInRefused') return fault
  return new Fault(
    'authFailed',
    `"${printable(name, 100)}" answers without a sign-in, so it needs none: start the bridge, and clients can use it. If some of its tools require one: ${fault.message}`,
    { cause: fault },
  )
}

/** Why there is nothing to sign in to where people have keys. */
function ofPersons(name: string, { page }: Accounts): Fault {
  const where = page ?? 'the page for sign-ins (<publicUrl>/sign-in) of the running bridge'
  return new Fault('authFailed', `"${printable(name, 100)}" takes a key of each person, who enters it at ${where}`)
}

function notOne(name: string): Fault {
  return new Fault(
    'authFailed',
    `The bridge does not sign in to "${name}": it is a program, it has an Authorization header or "oauth": false in the configuration, or "auth.passthrough" sends it the credentials of clients`,
  )
}
