/** The parts that all sign-ins share: their code, the store for tokens and the way to ask a person. */
import { proxiesOf } from '../../base/net/proxy.js'
import { Accounts } from './client/accounts.js'
import type { Person } from './person/flow.js'
import type { Network } from './reach.js'
import { SignIn } from './sign-in.js'
import { defaultTokenFolder, FileStore } from './store/files.js'
import { MemoryStore } from './store/memory.js'
import type { Holder, TokenRecord } from './store/record.js'
import { ReplicatedStore } from './store/replicated.js'
import type { TokenStore } from './store/store.js'

/** The code that signs in. A bridge gets it with the parts, so that it loads none where it signs in nowhere. */
export const SIGN_IN_CODE = { Accounts, ReplicatedStore, SignIn }

/** The parts. */
export interface SignInParts {
  code: typeof SIGN_IN_CODE
  store: TokenStore
  person: Person
  network?: Network | undefined
  /** The argument of `mcp-bridge login` for a server, by its name and address; by default its name. */
  loginName?: ((name: string, url: string) => string) | undefined
}

/** How to make them. */
export interface SignInPartsOptions {
  /** The folder for tokens; by default the usual one. */
  folder: string | undefined
  /** The command that opens an address, or `none`; by default that of the system. */
  browser: readonly string[] | 'none' | undefined
  env: Readonly<Record<string, string | undefined>>
  platform: string
  /** The user id of this process; undefined if the system has none. */
  uid: number | undefined
  /**
   * Shows an address to a person if no browser can be started. It is secret: never log it. Returns whether there is a
   * place for it.
   */
  show(address: string, code?: string): boolean
  /** Called once with the reason why tokens are not written to disk. */
  onDegraded(why: string): void
}

/** The code that starts a browser is loaded when it is needed. */
export function signInParts({
  folder: given,
  browser,
  env,
  platform,
  uid = -1,
  show,
  onDegraded,
}: SignInPartsOptions): SignInParts {
  const folder = given ?? usualFolder(env)
  return {
    code: SIGN_IN_CODE,
    store: folder === undefined ? new UnkeptStore(onDegraded) : new FileStore({ folder, uid, onDegraded }),
    person: {
      open: async (address) => {
        const { browser: opening } = await import('./person/browser.js')
        return opening({ command: browser, env, platform })(address)
      },
      show,
    },
    network: { proxyOf: proxiesOf(env) },
  }
}

/** The store if there is no folder. The reason is reported when the first record is kept. */
class UnkeptStore extends MemoryStore {
  #onUsed: ((why: string) => void) | undefined

  constructor(onUsed: (why: string) => void) {
    super()
    this.#onUsed = onUsed
  }

  override change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T> {
    this.#onUsed?.('the home folder of this user is unknown. Set "oauth.store"')
    this.#onUsed = undefined
    return super.change(key, holder, edit)
  }
}

function usualFolder(env: SignInPartsOptions['env']): string | undefined {
  try {
    return defaultTokenFolder(env)
  } catch {
    // A container may run as a user without an entry in the user database.
    return undefined
  }
}
