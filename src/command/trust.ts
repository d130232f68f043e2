/** Runs `mcp-bridge trust`. */

import { Failure } from '../base/net/failure.js'
import { readNamed } from '../base/net/readable.js'
import { printable, printableLines } from '../base/texts/printable.js'
import { canonical } from '../config/endpoint.js'
import type { Settings } from '../config/settings.js'
import { type Discovery, storePath } from '../services/discovery/discovery.js'
import { meaningOf } from '../services/discovery/sources/address.js'
import { type Examined, isConfigured } from '../services/discovery/steps.js'
import { KeyError, readPublicKey } from '../services/discovery/trust/keys.js'
import { isPin, originToPin } from '../services/discovery/trust/pin.js'
import { withFlags } from '../services/discovery/trust/remedy.js'
import { type Approval, TrustStore, TrustStoreError } from '../services/discovery/trust/store.js'
import { type CommandOutput, guardHint, look, targetOf, toolLines } from './discover.js'
import type { TrustAction } from './parse-trust.js'

export interface TrustContext {
  trustStore: string | undefined
  env: Readonly<Record<string, string | undefined>>
  /** Makes the discovery for settings. */
  discovering(settings: Settings): Discovery
  output: CommandOutput
  /** The command that lists the trust store. */
  list: string
}

/** The command cannot be carried out. */
class CannotError extends Error {}

const DAY = 86_400_000
const PUBLISHER = /^[a-z0-9](?:[a-z0-9.-]{0,126}[a-z0-9])?$/

/** Runs the command. Resolves to whether it succeeded. */
export async function runTrust(action: TrustAction, context: TrustContext): Promise<boolean> {
  const { output } = context
  try {
    await act(action, context)
    return true
  } catch (error) {
    const isKnown =
      error instanceof CannotError ||
      error instanceof TrustStoreError ||
      error instanceof Failure ||
      error instanceof KeyError ||
      (error instanceof Error && 'code' in error)
    if (!isKnown) throw error
    output.err(`mcp-bridge: ${error.message}\n`)
    return false
  }
}

async function act(action: TrustAction, context: TrustContext): Promise<void> {
  const { output, trustStore, env } = context
  const store = new TrustStore({ path: storePath(trustStore, env) })
  switch (action.do) {
    case 'list':
      return output.out(action.json ? `${printableLines(store.list())}\n` : listed(store))
    case 'approve':
      return approve(action, context)
    case 'pin':
      return pin(action, store, context)
    case 'revoke': {
      const approval = approvalOf(action.server, store.list().approvals, context.list)
      await store.revoke(approval.endpoint)
      return output.out(`${approval.name} (${approval.endpoint}) is no longer approved.\n`)
    }
    case 'unpin': {
      const origin = originOf(action.server)
      if (!(await store.unpin(origin))) throw new CannotError(`${origin} is not pinned`)
      return output.out(`${origin} is no longer pinned.\n`)
    }
    case 'key add': {
      const { publisher, file } = action
      if (!PUBLISHER.test(publisher))
        throw new CannotError(
          `"${printable(publisher)}" is not the name of a publisher: use small letters, digits, "." and "-"`,
        )
      const key = await readPublicKey(readNamed(file).toString('utf8'))
      await store.addKey(publisher, key)
      return output.out(`The key ${key.id} of ${publisher} is trusted.\n`)
    }
    case 'key remove': {
      const { publisher, id } = action
      if (!(await store.removeKey(publisher, id)))
        throw new CannotError(`${publisher} has no key ${id}: see ${context.list}`)
      return output.out(`The key ${id} of ${publisher} is no longer trusted.\n`)
    }
  }
}

async function approve(
  { server, settings, tools, days }: TrustAction & { do: 'approve' },
  context: TrustContext,
): Promise<void> {
  const { output } = context
  const discovery = context.discovering(settings)
  const one = await findOne(server, discovery, settings, output)
  const { candidate, facts, manifest, introspected, verdict, failure } = one
  const name = manifest?.server?.name ?? candidate.name
  if (isConfigured(candidate)) throw new CannotError(`${name} is in the configuration, so it is trusted already`)
  if (!introspected) {
    const help = failure?.phase === 'guard' ? `. ${guardHint([candidate.endpoint])}` : ''
    throw new CannotError(`${targetOf(candidate)} did not answer: ${failure?.message ?? verdict.reason}${help}`)
  }
  // A person can approve a server that nobody vouches for, but not one that failed a check.
  if (verdict.state !== 'trusted' && !verdict.remedy.includes(' trust approve '))
    throw new CannotError(`${name} cannot be approved: ${verdict.reason}. Required: ${verdict.missing}`)
  const until = Date.now() + days * DAY
  const { endpoint } = facts
  await discovery.store.approve({
    endpoint,
    name,
    bound: verdict.bound,
    tools: [...tools],
    until,
    list: introspected.tools,
  })
  const after = withFlags(discovery.parts.judge(facts), { settings, config: discovery.config, ...one })
  const which = tools.includes('*')
    ? 'All of its tools, as they are now'
    : `Of its tools, as they are now, ${tools.join(' ')}`
  output.out(
    [
      `${name}  ${targetOf(candidate)}`,
      ...toolLines(introspected.listing, introspected.tools.tools).map((line) => `  ${line}`),
      `${which}: approved until ${new Date(until).toISOString().slice(0, 16)}Z. If they change, approve them again.`,
      `The server is now ${after.state}: ${after.reason}.`,
      '',
    ].join('\n'),
  )
  if (after.state !== 'trusted') throw new CannotError(`The approval is not enough. Required: ${after.missing}`)
}

async function pin(
  { server, settings, backups }: TrustAction & { do: 'pin' },
  store: TrustStore,
  context: TrustContext,
): Promise<void> {
  const { output } = context
  const wrong = backups.find((one) => !isPin(one))
  if (wrong !== undefined)
    throw new CannotError(
      `"${printable(wrong)}" is not a pin: give the SHA-256 of a public key (SubjectPublicKeyInfo) in base64`,
    )
  const discovery = context.discovering(settings)
  const { pin, subject, issuer, names, validTo } = await discovery.lookAt(originOf(server))
  const origin = originOf(server)
  const before = store.pinsOf(origin)
  await store.pin(origin, [pin, ...backups.filter((one) => one !== pin)])
  output.out(
    [
      `${origin} is pinned to ${[pin, ...backups].join(' and ')}${before ? `, in place of ${before.join(' and ')}` : ''}.`,
      `  certificate  of ${printable(subject)} by ${printable(issuer)}, for ${printable(names, 200)}, until ${printable(validTo)}`,
      ...(backups.length > 0
        ? []
        : ['  When the key changes, pin it again. With --backup <pin> you can allow the next key now.']),
      '',
    ].join('\n'),
  )
}

/** The one found server with this name or address. */
async function findOne(
  server: string,
  discovery: Discovery,
  settings: Settings,
  output: CommandOutput,
): Promise<Examined> {
  const meant = meaningIn(server)
  const endpoint = meant?.kind === 'server' ? canonical(meant.finding.endpoint) : undefined
  const isMeant = ({ candidate }: Examined) =>
    candidate.name === server || (endpoint !== undefined && canonical(candidate.endpoint) === endpoint)
  const { servers } = await look(discovery, settings, output)
  const named = servers.filter(isMeant)
  // An address that was searched means all servers found there.
  const asked = settings.discover.length === 1 && settings.discover[0] === server
  const own = asked ? servers : meant ? (await look(discovery, settings, output, [server])).servers : []
  const [only, ...others] = named.length > 0 ? named : own.filter(({ candidate }) => !discovery.isOwn(candidate))
  if (!only || others.length > 0) {
    const which = [only, ...others, ...servers].flatMap((one) => (one ? [targetOf(one.candidate)] : []))
    const found = which.length === 0 ? 'No server was found' : `Found: ${[...new Set(which)].join(', ')}`
    throw new CannotError(
      `no single server is "${printable(server, 200)}". ${found}. Give its address, or the place where it is found with --discover`,
    )
  }
  return only
}

function meaningIn(text: string) {
  try {
    return meaningOf(text)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

function originOf(server: string): string {
  const meant = meaningIn(server)
  const url =
    meant?.kind === 'host'
      ? meant.origin
      : meant?.kind === 'server' && meant.finding.endpoint.kind === 'http'
        ? meant.finding.endpoint.url
        : undefined
  if (url === undefined)
    throw new CannotError(`"${printable(server)}" is not an address: give the host whose key is to be pinned`)
  try {
    return originToPin(url)
  } catch (error) {
    throw new CannotError(error instanceof Error ? error.message : String(error))
  }
}

function approvalOf(server: string, approvals: readonly Approval[], list: string): Approval {
  const meant = meaningIn(server)
  const endpoint = meant?.kind === 'server' ? canonical(meant.finding.endpoint) : undefined
  const named = approvals.filter((one) => one.endpoint === endpoint || one.name === server || one.endpoint === server)
  const [only, ...others] = named
  if (!only) throw new CannotError(`"${printable(server)}" is not approved: see ${list}`)
  if (others.length > 0)
    throw new CannotError(
      `several servers have this name; give the address of one: ${named.map(({ endpoint }) => endpoint).join(', ')}`,
    )
  return only
}

function listed(store: TrustStore): string {
  if (store.refusal !== undefined) throw new TrustStoreError(store.refusal)
  const { keys, pins, approvals } = store.list()
  const day = (moment: number) => new Date(moment).toISOString().slice(0, 10)
  const lines = [
    ...approvals.flatMap(({ name, endpoint, tools, since, until, withdrawn, bound }) => [
      `approved  ${name}  ${endpoint}`,
      `  tools     ${tools.join(' ')}  on ${day(since)}, until ${day(until)}, with ${bound === 'none' ? 'no key' : bound}`,
      ...(withdrawn === undefined ? (until < Date.now() ? ['  ! expired'] : []) : [`  ! withdrawn: ${withdrawn}`]),
    ]),
    ...pins.map(({ origin, pins, added }) => `pinned    ${origin}  ${pins.join(' ')}  on ${day(added)}`),
    ...keys.map(({ publisher, id, added }) => `key       ${publisher}  ${id}  on ${day(added)}`),
  ]
  return lines.length === 0 ? `No keys, pins or approvals yet (${store.path}).\n` : `${lines.join('\n')}\n`
}
