/** How a bridge inside a test signs in: tokens in a folder of the test, and a person who goes where they are sent. */
import { join } from 'node:path'
import { stderr } from 'node:process'
import type { Test } from 'tap'
import { SIGN_IN_CODE, type SignInParts } from '../../src/services/oauth/sign-in-parts.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { temporaryFolder } from './folder.js'
import { type Visit, visit } from './person.js'

export interface PersonParts {
  signIn: SignInParts
  folder: string
  /** Where browsers were sent. */
  opened: string[]
  /** Addresses that were shown, because no browser could be opened. */
  shown: string[]
  visits: Promise<Visit>[]
}

export interface PersonOptions {
  /** What the person does with an address; `none` has no browser, `away` does nothing. */
  person?: ((address: string) => Promise<Visit>) | 'none' | 'away'
  folder?: string
}

export function personParts(t: Test, { person = visit, folder }: PersonOptions = {}): PersonParts {
  const parts: PersonParts = {
    folder: folder ?? join(temporaryFolder(t), 'tokens'),
    opened: [],
    shown: [],
    visits: [],
    signIn: undefined as unknown as SignInParts,
  }
  parts.signIn = {
    code: SIGN_IN_CODE,
    store: new FileStore({ folder: parts.folder }),
    person: {
      open: async (address) => {
        if (person === 'none') return false
        parts.opened.push(address)
        if (person === 'away') return true
        const going = person(address)
        // Who waits for the sign-in would otherwise wait in vain, and nobody would know for what.
        going.catch((error: unknown) => stderr.write(`the visit of ${address} failed: ${String(error)}\n`))
        parts.visits.push(going)
        return true
      },
      show: (address) => parts.shown.push(address) > 0,
    },
  }
  return parts
}
