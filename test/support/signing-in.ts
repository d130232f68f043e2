/** What it takes to sign in to a server in a test: a server that wants it, an account, and a person. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import type { ShownToken } from '../../src/mcp/protocol/shown-token.js'
import { TokenAccount } from '../../src/services/oauth/client/account.js'
import { Obtainer } from '../../src/services/oauth/client/obtain.js'
import type { ClientSettings } from '../../src/services/oauth/client/settings.js'
import type { Network } from '../../src/services/oauth/reach.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import type { TokenStore } from '../../src/services/oauth/store/store.js'
import { temporaryFolder } from './folder.js'
import { type Visit, visit } from './person.js'
import { watchForSecrets } from './secrets.js'

/** A server that wants tokens, as far as signing in to it goes: its metadata, and its challenges. */
export class Protected {
  readonly asked: string[] = []
  /** What its metadata say, or how they are answered; undefined for none. */
  metadata: object | ((response: ServerResponse) => void) | undefined
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  /** `issuers` are those that its metadata name. */
  static async start(t: Test, ...issuers: readonly string[]): Promise<Protected> {
    let own: Protected
    const server = createServer(({ url = '' }, response) => {
      own.asked.push(url)
      const isMetadata = url === '/.well-known/oauth-protected-resource/mcp'
      if (!isMetadata || own.metadata === undefined) return response.writeHead(404).end()
      if (typeof own.metadata === 'function') return own.metadata(response)
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(own.metadata))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    own = new Protected(server)
    if (issuers.length > 0) own.metadata = { resource: own.url, authorization_servers: issuers }
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `${this.origin}/mcp`
  }

  /** A challenge as servers give it. */
  challenge(more = ''): string {
    return `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"${more}`
  }
}

export interface Signing {
  account: TokenAccount
  store: TokenStore
  folder: string
  /** Every time a browser was opened. */
  visits: Promise<Visit>[]
  /** Addresses that were shown, because no browser could be opened. */
  shown: string[]
  /** Codes that were shown with them. */
  codes: (string | undefined)[]
  logged: string[]
  /** A 401, as a request of a client that has been refused. */
  unauthorized(sent?: string, challenge?: string): Promise<string>
  /** A 403 that wants further scopes. */
  forbidden(sent: string | undefined, scope: string): Promise<string>
}

export interface SigningOptions {
  server: Protected
  settings?: Partial<ClientSettings>
  folder?: string
  account?: string
  store?: TokenStore
  /** What the person does with an address. */
  person?: ((address: string) => Promise<Visit>) | 'none'
  network?: Network
  isModern?: boolean
  now?: () => number
  /** The token of a caller, on whose behalf it is. */
  shown?: ShownToken
  mayAsk?: boolean
  /** Whether there is a terminal for the address; there is one by default. */
  terminal?: boolean
}

const never = new AbortController().signal

/** An account with a server, and a person who goes where the browser is sent. */
export function signingIn(t: Test, options: SigningOptions): Signing {
  const { server, settings = {}, person = visit, account: name = 'local', now, network, isModern = false } = options
  const folder = options.folder ?? join(temporaryFolder(t), 'tokens')
  const store = options.store ?? new FileStore({ folder })
  const visits: Promise<Visit>[] = []
  const shown: string[] = []
  const codes: (string | undefined)[] = []
  const logged: string[] = []
  const log = (fields: object, message: string) => logged.push(JSON.stringify([fields, message]))
  const common = { server: 'stock', settings: { grant: 'code' as const, ...settings }, store, now }
  const obtainer = new Obtainer({
    ...common,
    url: server.url,
    network,
    isModern: () => isModern,
    log: { info: log, warn: log },
    person: {
      open: async (address) => {
        if (person === 'none') return false
        const going = person(address)
        visits.push(going)
        going.catch(() => {})
        return true
      },
      show: (address, code) => {
        if (options.terminal ?? true) shown.push(address)
        codes.push(code)
        return options.terminal ?? true
      },
    },
  })
  const account = new TokenAccount({
    ...common,
    holder: { endpoint: server.url, account: name },
    shown: options.shown,
    obtainer: () => Promise.resolve(obtainer),
  })
  t.teardown(() => account.close())
  watchForSecrets(t, 'the log of an account', () => logged.join('\n'))
  const refused = (status: 401 | 403, challenge: string, sent: string | undefined) =>
    account.refused({ status, challenges: [challenge], sent }, never, options.mayAsk ?? true)
  return {
    account,
    store,
    folder,
    visits,
    shown,
    codes,
    logged,
    unauthorized: (sent, challenge = server.challenge()) => refused(401, challenge, sent),
    forbidden: (sent, scope) => refused(403, server.challenge(`, error="insufficient_scope", scope="${scope}"`), sent),
  }
}

/** How work ended that was to come to nothing. */
export async function reasonOf(work: Promise<unknown>): Promise<{ reason?: string | undefined; message: string }> {
  const ended = await work.then(
    (value) => new Error(`came to ${String(value)}`),
    (error: unknown) => error,
  )
  return ended instanceof Fault ? { reason: ended.row.reason, message: ended.message } : { message: String(ended) }
}

/** The token in a header. */
export const bearer = (header: string | undefined): string => header?.replace(/^Bearer /, '') ?? ''
