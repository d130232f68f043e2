/**
 * Seals what a client carries between a question and its answer, and remembers what may be used once: open questions, what
 * was approved and has not run, and tools that a person has allowed for a while. What is forgotten is asked again.
 */

import { digest } from '../../../base/crypto/digest.js'
import { randomId, type SealKey } from '../../../base/crypto/seal.js'
import { TextSealer } from '../../../base/crypto/text-sealer.js'
import { Fault } from '../../../base/fault/fault.js'
import { canonical } from '../../../base/rpc/canonical.js'
import { JsonError } from '../../../base/rpc/scan.js'
import { edit, type Json, write } from '../../../base/rpc/splice.js'
import type { KeptOwners } from '../../../mcp/ports/kept-owners.js'
import type { Call } from '../../../mcp/protocol/call.js'
import { AFTER, type Watched } from './watched.js'

/** What an approval is for: one tool of the server with these params, called by one principal. */
export interface Approved {
  principal: string
  tool: string
  /** A digest of all params but `_meta`. */
  digest: string
}

/** A state that this bridge has sealed for the call. */
export interface Pass {
  /** A question to the person, or a later one of the server. */
  of: 'question' | 'server' | 'page'
  id: string
  isOver: boolean
  /** The state of the server. */
  state: Json | undefined
}

/** Milliseconds in which a person has to answer later questions of a server, which has shorter limits. */
const OF_SERVER = 3_600_000

export interface PassesOptions {
  server: string
  keys: readonly SealKey[]
  owners: KeptOwners
  watched: Watched
}

export class Passes {
  readonly #server: string
  readonly #sealer: TextSealer
  readonly #owners: KeptOwners
  readonly #watched: Watched

  constructor({ server, keys, owners, watched }: PassesOptions) {
    this.#server = server
    this.#sealer = new TextSealer(keys, 'approval')
    this.#owners = owners
    this.#watched = watched
  }

  /** Makes a state for a later question of the server, which can be used once. */
  async issue(approved: Approved, state: Json | undefined): Promise<Json> {
    const id = randomId()
    await this.#put(`server ${id}`, approved.principal, OF_SERVER)
    return this.#sealed({ of: 'server', id }, approved, Date.now() + OF_SERVER, state)
  }

  /** Makes a state for a question, which can be used once. `expired` is called if nobody uses it in time, or before the bridge ends. */
  async ask(approved: Approved, within: number, expired: () => void): Promise<Json> {
    const id = randomId()
    const name = `question ${id}`
    const text = await this.#put(name, approved.principal, within + 2 * AFTER)
    this.#watched.watch(name, within, async () => {
      const isOpen = await this.#owners.change(name, OF_SERVER, (now) =>
        now === text ? { text: undefined, result: true } : { text: now, result: false },
      )
      if (isOpen) expired()
    })
    return this.#sealed({ of: 'question', id }, approved, Date.now() + within, undefined)
  }

  /** Makes a state that says that the client was sent to the page. */
  mark(approved: Approved, until: number): Json {
    return this.#sealed({ of: 'page', id: '' }, approved, until, undefined)
  }

  /** The name of a question at the page, which nobody can guess. */
  nameAtPage({ principal, tool, digest: d }: Approved): string {
    return this.#sealer.hash(JSON.stringify([this.#server, principal, tool, d]))
  }

  #sealed({ of, id }: Pick<Pass, 'of' | 'id'>, approved: Approved, until: number, state: Json | undefined): Json {
    const { principal, tool, digest: d } = approved
    const fields = {
      k: of,
      x: id,
      s: this.#server,
      n: digest(tool),
      p: this.#sealer.hash(principal),
      d,
      e: until,
    }
    return this.#sealer.seal(fields, state)
  }

  /**
   * The state of a retry; undefined if this bridge did not seal it for an approval, or if the params are others. Throws a Fault if it
   * is of another principal.
   */
  read(state: Json, approved: Approved, call: Call): Pass | undefined {
    const carried = this.#sealer.open(state)
    if (!carried) return undefined
    const { k, x, s, n, p, d, e } = carried.fields
    if (!this.#sealer.standsFor(p, approved.principal)) {
      call.foreign?.('foreignState')
      throw new Fault('invalidState', 'requestState belongs to another call')
    }
    if (s !== this.#server || n !== digest(approved.tool) || d !== approved.digest) return undefined
    return { of: k as Pass['of'], id: x as string, isOver: !(Number(e) > Date.now()), state: carried.text }
  }

  /** Uses a state. Resolves to whether it was unused. */
  use({ of, id }: Pick<Pass, 'of' | 'id'>): Promise<boolean> {
    const name = `${of} ${id}`
    this.#watched.forget(name)
    return this.#take(name)
  }

  /** Gives back the approval of a call that has not reached the server: to its state, or else to the next equal call. */
  async release(approved: Approved, milliseconds: number, pass: Pick<Pass, 'of' | 'id'> | undefined): Promise<void> {
    const name = pass ? `${pass.of} ${pass.id}` : nameOf('kept', this.#server, approved)
    await this.#put(name, approved.principal, milliseconds)
  }

  /** Uses a kept approval. Resolves to whether there is one. */
  useKept(approved: Approved): Promise<boolean> {
    return this.#take(nameOf('kept', this.#server, approved))
  }

  /** Allows a tool for a while, with any arguments. */
  async open(approved: Approved, milliseconds: number): Promise<void> {
    await this.#put(nameOf('open', this.#server, { ...approved, digest: '' }), approved.principal, milliseconds)
  }

  /** Whether a tool is allowed now. */
  isOpen(approved: Approved): Promise<boolean> {
    const name = nameOf('open', this.#server, { ...approved, digest: '' })
    return this.#owners.change(name, OF_SERVER, (text) => ({ text, result: text !== undefined }))
  }

  /** Resolves to what is kept. */
  #put(name: string, principal: string, milliseconds: number): Promise<string> {
    // With the time, so that what is written again is another text, and is kept anew.
    const text = `${digest(principal)} ${Date.now()}`
    return this.#owners.change(name, milliseconds, () => ({ text, result: text }))
  }

  #take(name: string): Promise<boolean> {
    return this.#owners.change(name, OF_SERVER, (text) => ({ text: undefined, result: text !== undefined }))
  }
}

/** A digest of the params of a call. Throws a Fault if they cannot be compared. */
export function digestOf({ params }: Call): string {
  try {
    // In a session of the server itself, `_meta` is one of the params.
    return digest(canonical(write(edit(params, { _meta: undefined }))))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new Fault('invalidParams', 'The arguments cannot be compared', { cause: error })
  }
}

function nameOf(what: string, server: string, { principal, tool, digest: d }: Approved): string {
  return `${what} ${digest(JSON.stringify([server, principal, tool, d]))}`
}
