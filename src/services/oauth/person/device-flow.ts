/**
 * One sign-in of a person on any device (RFC 8628): shows an address and a code, and asks the authorization server now and then
 * whether the person is done. It belongs to the record, not to a process: any process may ask next, and all see the token.
 */
import { Fault } from '../../../base/fault/fault.js'
import { checkDestination } from '../../../base/net/fetch.js'
import { pause } from '../../../base/time/pause.js'
import { GrantRefused, keepGranted, redeemDeviceCode, requestDeviceCode } from '../client/grants.js'
import { newProofKey } from '../client/proof-key.js'
import { knownClient, register } from '../client/register.js'
import { endingOf } from '../ending.js'
import { failed, networkFault } from '../failure.js'
import { sameIssuer } from '../issuer.js'
import { quoted } from '../quoted.js'
import { includesAll } from '../scopes.js'
import { type Client, ENDINGS, type PendingDevice, type Token, type TokenRecord } from '../store/record.js'
import { browserAddress } from './browser.js'
import type { FlowOptions, SignInFlow } from './flow.js'
import { endedWith } from './steps.js'

/** Milliseconds. */
const INTERVAL = 250
const POLL = { least: 1_000, usual: 5_000, slower: 5_000, most: 60_000 }
/** Longest time for the person. */
const LIFETIME = 1_800_000

export class DeviceFlow implements SignInFlow {
  readonly asked: readonly string[]
  readonly #options: FlowOptions
  readonly #began: number
  #known: PendingDevice | undefined
  /** The code that was shown last. */
  #shown: string | undefined
  #insists: boolean
  #onShown: () => void = () => {}
  readonly shown = new Promise<void>((resolve) => {
    this.#onShown = resolve
  })

  constructor(options: FlowOptions) {
    this.#options = options
    this.asked = options.asked
    this.#began = options.now()
    this.#insists = options.insist
  }

  get address(): string | undefined {
    return this.#known?.address
  }

  get code(): string | undefined {
    return this.#known?.isEntered ? this.#known.userCode : undefined
  }

  get isShown(): boolean {
    return this.#shown !== undefined
  }

  remind(insist = false): void {
    if (insist) this.#shown = undefined
    this.#insists ||= insist
  }

  /** Nothing comes back to this machine. */
  paste(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  async run(): Promise<Token> {
    const { store, key, signal, now } = this.#options
    try {
      for (;;) {
        signal.throwIfAborted()
        const record = await store.read(key)
        const token = this.#tokenOf(record)
        if (token) return token
        if (record?.ended && record.ended.since >= this.#began) throw endingOf(record.ended)
        const device = this.#suits(record?.device) ? record?.device : undefined
        if (!device && this.#known) throw this.#over('was cancelled')
        if (!device) {
          await this.#begin()
          continue
        }
        this.#known = device
        this.#show(device)
        if (device.until <= now()) throw this.#over('was not finished in time')
        if (device.next <= now() && (await this.#mayAsk(device))) await this.#ask(device)
        else await pause(INTERVAL, signal)
      }
    } catch (error) {
      throw await this.#end(error)
    }
  }

  /** Whether a sign-in in the record is for the same issuer, resource and scopes. */
  #suits(device: PendingDevice | undefined): device is PendingDevice {
    const { found, asked, settings } = this.#options
    if (!device || this.#known?.code === device.code) return device !== undefined
    return (
      // A command begins one that has all of its time.
      !this.#insists &&
      sameIssuer(device.issuer, found.server.issuer) &&
      device.resource === found.resource &&
      (settings.clientId === undefined || device.client.id === settings.clientId) &&
      includesAll(device.asked, asked) &&
      device.until > this.#began
    )
  }

  #tokenOf(record: TokenRecord | undefined): Token | undefined {
    const { known, found, asked } = this.#options
    const token = record?.token
    const fits = token && token.access !== known && sameIssuer(token.issuer, found.server.issuer)
    return fits && includesAll(token.asked, asked) ? token : undefined
  }

  async #begin(): Promise<void> {
    const { store, key, holder, found, asked, now, log } = this.#options
    const { server, resource, dpop } = found
    const what = `The authorization server ${quoted(server.issuer)}`
    const endpoints = [server.device_authorization_endpoint, server.token_endpoint]
    if (endpoints.includes(undefined))
      throw failed(`${what} has no device authorization endpoint: sign in with a browser of this machine`)
    for (const endpoint of endpoints)
      await checkDestination(endpoint ?? '', this.#options.reach).catch((error: unknown) => {
        throw networkFault(error, what)
      })
    const client = await this.#client()
    const given = await requestDeviceCode(this.#context(client), asked)
    const { verification_uri: uri, verification_uri_complete: complete, expires_in: seconds, interval } = given
    const every = interval === undefined ? POLL.usual : Math.max(POLL.least, interval * 1_000)
    const device: PendingDevice = {
      issuer: server.issuer,
      ...(resource !== undefined && { resource }),
      client,
      code: given.device_code,
      userCode: given.user_code,
      address: this.#checked(complete ?? uri),
      isEntered: complete === undefined,
      asked: [...asked],
      began: now(),
      until: now() + Math.min(Math.max(seconds, 1) * 1_000, LIFETIME),
      every: Math.min(Math.round(every), POLL.most),
      next: now() + Math.min(Math.round(every), POLL.most),
      ...(dpop && { dpop }),
    }
    const isOwn = await store.change(key, holder, (record) => {
      // Another process may have begun one meanwhile.
      if (this.#suits(record.device)) return false
      record.device = device
      record.client ??= client
      return true
    })
    this.#insists = false
    if (!isOwn) return
    this.#known = device
    log.info({ event: 'sign_in_started', issuer: server.issuer }, 'sign-in started')
  }

  /** People are sent to pages on the web only. */
  #checked(address: string): string {
    try {
      return browserAddress(address)
    } catch {
      throw failed(`The authorization server ${quoted(this.#options.found.server.issuer)} names no https:// address`)
    }
  }

  async #client(): Promise<Client> {
    const { store, key, found, settings, reach, asked, now } = this.#options
    const { server } = found
    const known = knownClient(server, settings, undefined, now())
    if (known) return known
    const { client: before, asked: last } = (await store.read(key)) ?? {}
    const isUsable = before?.how === 'registered' && before.redirectUri === undefined
    if (isUsable && sameIssuer(before.issuer, server.issuer) && includesAll(last?.scopes ?? [], asked)) return before
    return register({ server, settings, redirectUri: undefined, scopes: asked, reach, now: now() })
  }

  #context(client: Client) {
    const { found, settings, reach, now } = this.#options
    return { server: found.server, client, resource: found.resource, settings, reach, now }
  }

  #show({ code, address, userCode }: PendingDevice): void {
    if (this.#shown === code) return
    const { person, log, server, loginName = server } = this.#options
    this.#shown = code
    this.#onShown()
    // The address is secret, so it is in no log.
    if (person.show(address, userCode))
      log.info({ event: 'browser_unavailable' }, 'the address for the sign-in is shown on the terminal')
    else
      log.warn(
        { event: 'browser_unavailable', next: `mcp-bridge login ${loginName}` },
        'there is no terminal for the address of the sign-in: sign in with the command in "next"',
      )
  }

  /** Whether this process is the one to ask now. */
  #mayAsk({ code }: PendingDevice): Promise<boolean> {
    const { store, key, holder, now } = this.#options
    return store.change(key, holder, ({ device }) => {
      if (device?.code !== code || device.next > now()) return false
      device.next = now() + device.every
      return true
    })
  }

  async #ask(device: PendingDevice): Promise<void> {
    const { store, key, holder, log } = this.#options
    const { client, code, asked, dpop } = device
    const proof = dpop ? await newProofKey() : undefined
    try {
      const granted = await redeemDeviceCode({ ...this.#context(client), key: proof }, code, asked)
      await store.change(key, holder, (record) => {
        // The person has signed out meanwhile: drop the token.
        if (record.device?.code !== code) return
        delete record.device
        delete record.ended
        keepGranted(record, granted)
      })
      log.info({ event: 'signed_in' }, 'signed in')
    } catch (error) {
      if (error instanceof GrantRefused && error.code === 'authorization_pending') return
      // Asked too often, or not reachable for now (RFC 8628, 3.5).
      if (!(error instanceof Fault && error.fault === 'upstreamUnavailable')) throw error
      await store.change(key, holder, ({ device }) => {
        if (device?.code !== code) return
        device.every = Math.min(device.every + POLL.slower, POLL.most)
        device.next = this.#options.now() + device.every
      })
    }
  }

  #over(how: string): Fault {
    return new Fault('signInRequired', `Signing in to ${quoted(this.#options.server)} ${how}`)
  }

  #asFault(error: unknown): Fault {
    if (!(error instanceof GrantRefused)) return Fault.from(error)
    const issuer = quoted(this.#options.found.server.issuer)
    if (error.code === 'access_denied')
      return new Fault('signInRefused', `Signing in was declined at ${issuer} (access_denied)`)
    if (error.code === 'expired_token') return this.#over('was not finished in time')
    return failed(`The authorization server ${issuer} refused the sign-in on another device: ${error.code}`)
  }

  async #end(error: unknown): Promise<unknown> {
    const { signal, log, store, key, holder, now } = this.#options
    if (signal.aborted) return error
    const fault = this.#asFault(error)
    const ending = ENDINGS.find((one) => one === fault.fault)
    const isForgotten = error instanceof GrantRefused && error.isOfClient
    if (ending)
      await store.change(key, holder, (record) => {
        if (this.#known && record.device && record.device.code !== this.#known.code) return
        delete record.device
        if (isForgotten && record.client?.how === 'registered') delete record.client
        record.ended = endedWith(fault, ending, now())
      })
    log.warn({ event: 'sign_in_failed', reason: fault.row.reason, why: fault.message }, 'sign-in failed')
    return fault
  }
}
