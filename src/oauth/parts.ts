/** What it takes to sign in to servers: where tokens are kept, and how a person is asked. */
import type { Person } from './person/flow.js'
import type { Network } from './reach.js'
import { defaultTokenFolder, FileStore } from './store/files.js'
import { MemoryStore } from './store/memory.js'
import type { Holder, TokenRecord } from './store/record.js'
import type { Store } from './store/store.js'

export interface SignInParts {
  store: Store
  person: Person
  network?: Network | undefined
  /** What `mcp-bridge login` is told for a server, by its name and address; its name by default. */
  loginName?: ((name: string, url: string) => string) | undefined
}

export interface SignInPartsOptions {
  /** The folder with the tokens; the usual one by default. */
  folder: string | undefined
  /** The command that opens an address, or `none`; the system's by default. */
  browser: readonly string[] | 'none' | undefined
  env: Readonly<Record<string, string | undefined>>
  platform: string
  /** Who runs this; undefined where the system has no such numbers. */
  uid: number | undefined
  /** Shows an address to a person where no browser can be started. It is for nobody else: never logged. */
  show(address: string): void
  /** Is told, once, why tokens are not written. */
  onDegraded(why: string): void
}

/** What starts a browser is loaded when one is to be started. */
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
    store: folder === undefined ? new UnkeptStore(onDegraded) : new FileStore({ folder, uid, onDegraded }),
    person: {
      open: async (address) => {
        const { browser: opening } = await import('./person/browser.js')
        return opening({ command: browser, env, platform })(address)
      },
      show,
    },
  }
}

/** Where there is no folder for records. Who says so is told when there is one to keep. */
class UnkeptStore extends MemoryStore {
  #onUsed: ((why: string) => void) | undefined

  constructor(onUsed: (why: string) => void) {
    super()
    this.#onUsed = onUsed
  }

  override change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T> {
    this.#onUsed?.('nobody knows the home folder of whoever runs this: set "oauth.store"')
    this.#onUsed = undefined
    return super.change(key, holder, edit)
  }
}

function usualFolder(env: SignInPartsOptions['env']): string | undefined {
  try {
    return defaultTokenFolder(env)
  } catch {
    // A container may run as a user whom nothing names.
    return undefined
  }
}
