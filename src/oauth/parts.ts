/** What it takes to sign in to servers: where tokens are kept, and how a person is asked. */
import type { Person } from './person/flow.js'
import type { Network } from './reach.js'
import { defaultTokenFolder, FileStore } from './store/files.js'
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
  /** Shows an address to a person where no browser can be started. It is for nobody else: never logged. */
  show(address: string): void
  /** Is told, once, why tokens are not written. */
  onDegraded(why: string): void
}

/** What starts a browser is loaded when one is to be started. */
export function signInParts({ folder, browser, env, platform, show, onDegraded }: SignInPartsOptions): SignInParts {
  return {
    store: new FileStore({ folder: folder ?? defaultTokenFolder(env), onDegraded }),
    person: {
      open: async (address) => {
        const { browser: opening } = await import('./person/browser.js')
        return opening({ command: browser, env, platform })(address)
      },
      show,
    },
  }
}
