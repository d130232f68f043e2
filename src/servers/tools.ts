/** Remembers the facts about a server's tools that calls need. Lists the tools only if no client has done so. */

import { MAX_NAME, MAX_PAGES, MAX_TOOLS } from '../base/limits/constants.js'
import type { Reservation } from '../base/limits/memory.js'
import { detach, weightOf } from '../base/rpc/source.js'
import { arrayIn, type Json, objectIn, opens, type Payload, payloadAt, raw, value } from '../base/rpc/splice.js'
import { annotationsOfTool, type ToolAnnotations } from '../mcp/protocol/annotations.js'
import { nextCursor } from '../mcp/protocol/listed.js'

export interface ToolFacts extends ToolAnnotations {
  /** The tool's `execution.taskSupport`; undefined if it is missing or invalid. */
  taskSupport: (typeof TASK_SUPPORT)[number] | undefined
  /** The tool declares `readOnlyHint` or `idempotentHint`. */
  repeatable: boolean
}

const TASK_SUPPORT = ['forbidden', 'optional', 'required'] as const

type Facts = Map<string, ToolFacts>

/** Maximum characters of their names, and of the arguments to mirror into headers. */
const MAX_FACTS = 1024 * 1024
/** Limits of pages that are stored unread until a fact is needed. Beyond them, pages are read at once. */
const MAX_UNREAD_PAGES = { pages: 8, characters: 256 * 1024 }
/** Assumed bytes of a tool's facts beside its name. */
const PER_TOOL = 200

export class ToolCache {
  /** All tools are known, so `known` is enough. */
  knowsAll = false
  readonly #fetchPage: (cursor: Json | undefined) => Promise<Payload>
  #asked: Promise<Facts | undefined> | undefined
  #known: Facts = new Map()
  /** Listed pages, which are read when a fact is needed. */
  #unread: Payload[] = []
  /** The cursor of the next page, while a client lists page by page. */
  #next: Json | undefined
  /** The bridge has listed the tools, or tried to, since they were forgotten. */
  #wasListed = false
  readonly #reservation: Reservation

  /** `fetchPage` requests a page of `tools/list`. Facts are remembered if `reservation` has room for them. */
  constructor(fetchPage: (cursor: Json | undefined) => Promise<Payload>, reservation: Reservation) {
    this.#fetchPage = fetchPage
    this.#reservation = reservation
  }

  close(): void {
    this.forget()
    this.#reservation.end()
  }

  /** Returns the facts about a tool; lists the tools if they are not all known. Undefined if the tool is not listed. */
  async find(name: string): Promise<ToolFacts | undefined> {
    if (this.knowsAll) return this.known(name)
    this.#wasListed = true
    this.#asked ??= this.#walk().catch(() => undefined)
    const asked = this.#asked
    const facts = await asked
    // A change, or another list that has arrived in the meantime, makes this one stale.
    if (this.#asked === asked) {
      this.#asked = undefined
      if (facts) this.#take(facts)
    }
    return facts?.get(name)
  }

  /** As `find`, but does not list the tools once more for a tool that is not listed, or if listing them has failed. */
  async findOnce(name: string): Promise<ToolFacts | undefined> {
    const knownTool = this.known(name)
    return knownTool || (this.#wasListed && !this.#asked) ? knownTool : this.find(name)
  }

  known(name: string): ToolFacts | undefined {
    if (this.#unread.length > 0) this.#readAll()
    return this.#known.get(name)
  }

  /** Takes a page that a client has listed, unless it does not follow the last one. */
  learn(page: Payload, cursor: Json | undefined): void {
    if (cursor === undefined) this.forget()
    else if (cursor !== this.#next) return
    this.#unread.push(page)
    this.#next = detach(nextCursor(page))
    this.knowsAll = this.#next === undefined
    const { pages, characters } = MAX_UNREAD_PAGES
    if (this.#unread.length > pages || weightOfPages(this.#unread) > characters) this.#readAll()
    else this.#reserve()
  }

  forget(): void {
    this.#asked = undefined
    this.#next = undefined
    this.#wasListed = false
    this.#take(new Map(), false)
  }

  #take(facts: Facts, complete = true): void {
    this.#known = facts
    this.#unread = []
    this.knowsAll = complete
    this.#reserve()
  }

  #readAll(): void {
    for (const page of this.#unread.splice(0)) read(page, this.#known)
    this.#reserve()
  }

  /** Reserves memory for all facts and pages. Without memory, forgets them: the tools can be listed again. */
  #reserve(): void {
    if (this.#reservation.resize(weightOfPages(this.#unread) + weightOfFacts(this.#known)) === undefined) return
    this.#known = new Map()
    this.#unread = []
    this.knowsAll = false
    this.#reservation.resize(0)
  }

  async #walk(): Promise<Facts> {
    const facts = new Map<string, ToolFacts>()
    let cursor: Json | undefined
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await this.#fetchPage(cursor)
      read(page, facts)
      const next = nextCursor(page)
      if (next === undefined || next === cursor) break
      cursor = next
    }
    return facts
  }
}

function read(page: Payload, into: Map<string, ToolFacts>): void {
  const tools = arrayIn(page, 'tools')
  let weight = weightOfFacts(into)
  for (const span of tools?.elements ?? []) {
    if (into.size >= MAX_TOOLS || weight > MAX_FACTS) return
    const tool = tools && payloadAt(tools.source, span)
    if (!tool) continue
    const name = value(tool, 'name')
    if (typeof name !== 'string' || name.length > MAX_NAME) continue
    const facts = factsOf(tool)
    weight += weightOfTool(name, facts)
    into.set(name, facts)
  }
}

function weightOfPages(pages: readonly Payload[]): number {
  return pages.reduce((sum, { source }) => sum + weightOf(source), 0)
}

function weightOfFacts(facts: Facts): number {
  let weight = 0
  for (const [name, tool] of facts) weight += weightOfTool(name, tool)
  return weight
}

function weightOfTool(name: string, { annotations }: ToolFacts): number {
  return annotations.reduce((sum, { header, path }) => sum + header.length + path.join().length, name.length + PER_TOOL)
}

function factsOf(tool: Payload): ToolFacts {
  const hints = objectIn(tool, 'annotations')
  const says = (hint: string) => hints !== undefined && raw(hints, hint) === 'true'
  const execution = objectIn(tool, 'execution')
  const support = execution && opens(execution, 'taskSupport') === '"' ? value(execution, 'taskSupport') : undefined
  const taskSupport = TASK_SUPPORT.find((one) => one === support)
  const { annotations, misannotated } = annotationsOfTool(tool)
  const mirrored = annotations.map(({ header, path }) => ({ header, path: path.map((step) => detach(step)) }))
  return {
    annotations: mirrored,
    misannotated: detach(misannotated?.slice(0, MAX_NAME)),
    taskSupport,
    repeatable: says('readOnlyHint') || says('idempotentHint'),
  }
}
