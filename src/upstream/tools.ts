/** What a session knows of its server's tools beyond what it relays: looked up when a call needs it, once. */
import { annotationsOfTool, type ToolAnnotations } from '../protocol/annotations.js'
import { arrayIn, type Json, objectIn, type Payload, payloadAt, raw, value } from '../rpc/splice.js'

export interface ToolFacts extends ToolAnnotations {
  /** Whether a call of the tool may or has to be a task; undefined where that is not said. */
  taskSupport: unknown
  /** The server says that calling it twice does no more than calling it once. */
  repeatable: boolean
}

type Facts = Map<string, ToolFacts>

const MAX_TOOLS = 2_000
const MAX_PAGES = 100
const MAX_UNREAD = 8

export class ToolCache {
  readonly #fetchPage: (cursor: Json | undefined) => Promise<Payload>
  #asked: Promise<Facts | undefined> | undefined
  #known: Facts = new Map()
  #complete = false
  /** Pages that somebody has listed: read only when something has to be known. */
  #unread: Payload[] = []
  /** The cursor of the page that comes next, while somebody lists. */
  #next: Json | undefined

  constructor(fetchPage: (cursor: Json | undefined) => Promise<Payload>) {
    this.#fetchPage = fetchPage
  }

  /** What is known of a tool; asks the server once if not all is known. Undefined where it cannot be found out. */
  async find(name: string): Promise<ToolFacts | undefined> {
    if (this.#complete) return this.known(name)
    this.#asked ??= this.#walk().catch(() => undefined)
    const asked = this.#asked
    const facts = await asked
    // What came in after the list was asked for may have made it stale.
    if (this.#asked === asked) {
      this.#asked = undefined
      if (facts) this.#take(facts)
    }
    return facts?.get(name)
  }

  /** Whether what the server offers is known, so that nobody has to be asked. */
  get knowsAll(): boolean {
    return this.#complete
  }

  /** What is known of a tool without asking. */
  known(name: string): ToolFacts | undefined {
    if (this.#unread.length > 0) for (const page of this.#unread.splice(0)) read(page, this.#known)
    return this.#known.get(name)
  }

  /** Takes a page that a client has just listed, in its place in the list. */
  learn(page: Payload, cursor: Json | undefined): void {
    if (cursor === undefined) this.forget()
    else if (cursor !== this.#next) return
    const next = raw(page, 'nextCursor')
    if (this.#unread.push(page) > MAX_UNREAD) this.known('')
    this.#next = next?.startsWith('"') ? next : undefined
    this.#complete = this.#next === undefined
  }

  forget(): void {
    this.#asked = undefined
    this.#next = undefined
    this.#take(new Map(), false)
  }

  #take(facts: Facts, complete = true): void {
    this.#known = facts
    this.#unread = []
    this.#complete = complete
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
  const execution = objectIn(tool, 'execution')
  const taskSupport = execution && value(execution, 'taskSupport')
  return { ...annotationsOfTool(tool), taskSupport, repeatable: says('readOnlyHint') || says('idempotentHint') }
}
