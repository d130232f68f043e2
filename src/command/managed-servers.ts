/**
 * The servers that operators add and remove while the bridge runs: a layer over those of the file. Each change is checked as the
 * file is, and applied as a change of the file is, one after the other.
 */

import { amongNames } from '../base/texts/nearest.js'
import { entryName } from '../config/schema/values.js'
import { ConfigError, type Issue, type Settings } from '../config/settings.js'
import { isObject } from '../config/value.js'
import type { Managed, ManagedServers } from '../mcp/ports/managed-servers.js'
import { changedText } from './edit-config.js'
import type { Layered } from './settings.js'
import { UsageError } from './usage-error.js'
import { readClientFile, writeClientFile } from './wrap/file.js'

/** A configuration, and the files that it was read from. */
export interface Read {
  settings: Settings
  files: readonly string[]
}

/** What a change is applied with. */
export interface Applying {
  /** The settings that are in use. */
  now(): Settings
  /** The settings with changes. Throws a ConfigError or a UsageError. */
  read(changes: Layered): Read
  /** Uses settings from now on. Resolves to why that is not possible; undefined if it is. */
  use(read: Read): Promise<Error | undefined>
  /** The configuration file; undefined without one. */
  file: string | undefined
}

/** Most servers in the layer. */
const MAX_MANAGED = 1_000
const NO_ENTRY = 'has to be an object: { "url": "https://…" } or { "command": "…", "args": ["…"] }'

export class ManagedLayer implements ManagedServers {
  /** Entries by name; undefined for a server of the file that is left out. */
  #entries: ReadonlyMap<string, unknown> = new Map()
  #start: (applying: Applying) => void = () => {}
  readonly #applying = new Promise<Applying>((resolve) => {
    this.#start = resolve
  })
  #token: () => string | undefined = () => undefined
  /** Makes changes run one after another. */
  #changing: Promise<unknown> = Promise.resolve()

  /** Changes can be made from now on. */
  start(applying: Applying): void {
    this.#token = () => applying.now().adminToken
    this.#start(applying)
  }

  token(): string | undefined {
    return this.#token()
  }

  /** What the file is read with. */
  get changes(): Layered {
    return { servers: this.#entries }
  }

  change(name: string, entry: unknown, save: boolean): Promise<Managed> {
    const changed = this.#changing.then(() => this.#change(name, entry, save)).catch(answerTo)
    this.#changing = changed
    return changed
  }

  async #change(name: string, entry: unknown, save: boolean): Promise<Managed> {
    const applying = await this.#applying
    const { file } = applying
    const path = `mcpServers.${name}`
    const wrongName = entryName.safeParse(name).error?.issues[0]?.message
    if (wrongName !== undefined) return refused([{ path, message: wrongName }])
    if (entry !== undefined && !isObject(entry)) return refused([{ path, message: NO_ENTRY }])
    const before = applying.now().mcpServers
    if (entry === undefined && !Object.hasOwn(before, name))
      return {
        status: 404,
        body: { message: `there is no server "${name}": ${amongNames(name, Object.keys(before))}` },
      }
    if (save && file === undefined) return refused([{ path: 'save', message: 'needs a configuration file (--config)' }])
    const saved = save && file !== undefined ? savedIn(file, name, entry) : undefined
    const { entries, read } = saved
      ? this.#with(applying, { without: name, texts: new Map([[saved.given, saved.text]]) })
      : entry === undefined
        ? this.#withoutServer(applying, name)
        : this.#with(applying, { name, entry })
    if (entries.size > MAX_MANAGED)
      return refused([{ path, message: `would be one of more than ${MAX_MANAGED}: save some` }])
    saved?.write()
    const failure = await applying.use(read)
    if (failure) return { status: 409, body: { message: failure.message } }
    this.#entries = entries
    const isNew = !Object.hasOwn(before, name)
    return { status: entry !== undefined && isNew ? 201 : 200, body: { server: name, saved: save } }
  }

  /** A server that was added is forgotten; one of the file is left out. */
  #withoutServer(applying: Applying, name: string) {
    const forgotten = this.#with(applying, { without: name })
    return Object.hasOwn(forgotten.read.settings.mcpServers, name)
      ? this.#with(applying, { name, entry: undefined })
      : forgotten
  }

  #with(
    applying: Applying,
    change: { name: string; entry: unknown } | { without: string; texts?: ReadonlyMap<string, string> },
  ): { entries: ReadonlyMap<string, unknown>; read: Read } {
    const entries = new Map(this.#entries)
    if ('without' in change) entries.delete(change.without)
    else entries.set(change.name, change.entry)
    const texts = 'texts' in change ? change.texts : undefined
    return { entries, read: applying.read({ servers: entries, texts }) }
  }
}

/** The text of the file with the change, and what writes it. */
function savedIn(file: string, name: string, entry: Readonly<Record<string, unknown>> | undefined) {
  const before = readClientFile(file)
  const text = changedText(file, before.text, { name, entry })
  return { given: file, text, write: () => writeClientFile(before, text) }
}

function refused(issues: readonly Issue[]): Managed {
  return { status: 400, body: { issues: issues.map(({ path, message }) => ({ path, message })) } }
}

function answerTo(error: unknown): Managed {
  if (error instanceof ConfigError) return refused(error.issues)
  if (error instanceof UsageError) return refused([{ path: '', message: error.message }])
  throw error
}
