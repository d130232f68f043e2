/** What a session knows of its server's tools beyond what it relays: looked up when a call needs it, once. */
import { type Annotation, AnnotationError, annotationsOf, KEYWORD } from '../protocol/annotations.js'
import { arrayIn, type Json, objectIn, type Payload, payloadAt, raw, value } from '../rpc/splice.js'

export interface ToolFacts {
  /** Arguments that modern clients mirror into headers. */
  annotations: readonly Annotation[]
  /** The server says that calling it twice does no more than calling it once. */
  repeatable: boolean
}

type Facts = ReadonlyMap<string, ToolFacts>

const MAX_TOOLS = 2_000
const MAX_PAGES = 100
const NOTHING: Facts = new Map()

export class ToolCache {
  readonly #fetchPage: (cursor: Json | undefined) => Promise<Payload>
  #asked: Promise<Facts> | undefined
  #known: Facts | undefined
  /** A whole list that somebody else has asked for: read only when something has to be known. */
  #listed: Payload | undefined

  constructor(fetchPage: (cursor: Json | undefined) => Promise<Payload>) {
    this.#fetchPage = fetchPage
  }

  /** What is known of a tool; asks the server once if nothing is known at all. Undefined where it cannot be found out. */
  async find(name: string): Promise<ToolFacts | undefined> {
    const known = this.#read()
    if (known) return known.get(name)
    this.#asked ??= this.#walk().catch(() => NOTHING)
    const asked = this.#asked
    const facts = await asked
    // What came in after the list was asked for may have made it stale.
    if (this.#asked === asked) {
      this.#asked = undefined
      if (facts !== NOTHING) this.#known = facts
    }
    return facts.get(name)
  }

  /** Whether what the server offers is known, so that nobody has to be asked. */
  get knowsAll(): boolean {
    return this.#read() !== undefined
  }

  /** What is known of a tool without asking. */
  known(name: string): ToolFacts | undefined {
    return this.#read()?.get(name)
  }

  /** Takes what a client has just listed, if it is the whole list. */
  learn(page: Payload): void {
    if (!raw(page, 'nextCursor')?.startsWith('"')) this.#listed = page
  }

  forget(): void {
    this.#asked = undefined
    this.#known = undefined
    this.#listed = undefined
  }

  #read(): Facts | undefined {
    if (!this.#listed) return this.#known
    const facts = new Map<string, ToolFacts>()
    read(this.#listed, facts)
    this.#listed = undefined
    this.#known = facts
    return facts
  }

  async #walk(): Promise<Facts> {
    const facts = new Map<string, ToolFacts>()
    let cursor: Json | undefined
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await this.#fetchPage(cursor)
      read(page, facts)
      const next = raw(page, 'nextCursor')
      if (!next?.startsWith('"') || next === cursor) break
      cursor = next
    }
    return facts
  }
}

function read(page: Payload, into: Map<string, ToolFacts>): void {
  const tools = arrayIn(page, 'tools')
  for (const span of tools?.elements ?? []) {
    if (into.size >= MAX_TOOLS) return
    const tool = tools && payloadAt(tools.source, span)
    if (!tool) continue
    const name = value(tool, 'name')
    if (typeof name === 'string') into.set(name, factsOf(tool))
  }
}

function factsOf(tool: Payload): ToolFacts {
  const hints = objectIn(tool, 'annotations')
  const says = (hint: string) => hints !== undefined && raw(hints, hint) === 'true'
  return { annotations: mirrored(tool), repeatable: says('readOnlyHint') || says('idempotentHint') }
}

function mirrored(tool: Payload): Annotation[] {
  const schema = objectIn(tool, 'inputSchema')
  if (!schema || !raw(tool, 'inputSchema')?.includes(KEYWORD)) return []
  try {
    return annotationsOf(schema)
  } catch (error) {
    // Such a tool is listed without its annotations, so nobody can be held to them.
    if (error instanceof AnnotationError) return []
    throw error
  }
}
