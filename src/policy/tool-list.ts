/** Reads lists of tools for what trust depends on: what each says of itself, and what its hints are. */
import { createHash } from 'node:crypto'
import type { ToolFact, ToolList } from '../ports/trust-status.js'
import { withoutMisannotated } from '../protocol/annotations.js'
import { Fault } from '../protocol/fault.js'
import { canonical } from '../rpc/canonical.js'
import {
  arrayIn,
  duplicateKey,
  type Json,
  keys,
  objectIn,
  type Payload,
  payloadAt,
  raw,
  value,
  write,
} from '../rpc/splice.js'

const MAX_TOOLS = 2_000
const MAX_PAGES = 100
/** What a model or a person goes by. */
const TELLING: readonly string[] = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations']

/** Asks for all pages of a list. Throws a Fault where there is no end to them. */
export async function fetchTools(page: (cursor: Json | undefined) => Promise<Payload>): Promise<ToolList> {
  const pages: Payload[] = []
  let cursor: Json | undefined
  do {
    if (pages.length === MAX_PAGES) throw new Fault('upstreamProtocol', 'The list of tools has no end')
    pages.push(await page(cursor))
    cursor = nextCursor(pages.at(-1) as Payload)
  } while (cursor !== undefined)
  return toolList(pages)
}

/** Where the list goes on after a page. */
export function nextCursor(page: Payload): Json | undefined {
  const next = raw(page, 'nextCursor')
  return next?.startsWith('"') ? next : undefined
}

/** What is in these pages of a list. Throws a Fault where it is more than can be kept in mind. */
export function toolList(pages: readonly Payload[]): ToolList {
  const tools = new Map<string, ToolFact>()
  for (const page of pages) {
    // Whoever has headers is shown tools that others are not, and that nobody can call through the bridge.
    const array = arrayIn(withoutMisannotated(page), 'tools')
    for (const span of array?.elements ?? []) {
      const tool = array && payloadAt(array.source, span)
      const name = tool && value(tool, 'name')
      if (!tool || typeof name !== 'string') continue
      const before = tools.get(name)
      tools.set(name, before ? both(before, factOf(tool)) : factOf(tool))
      if (tools.size > MAX_TOOLS) throw new Fault('upstreamProtocol', `The server lists more than ${MAX_TOOLS} tools`)
    }
  }
  return listOf(tools)
}

/** A list in which some tools have been seen to be others than they were. */
export function withTools({ tools }: ToolList, others: ToolList): ToolList {
  return listOf(new Map([...tools, ...others.tools]))
}

function listOf(tools: ReadonlyMap<string, ToolFact>): ToolList {
  const lines = [...tools].map(([name, { digest }]) => JSON.stringify([name, digest]))
  return { digest: digestOf(lines.sort().join('\n')), tools }
}

function factOf(tool: Payload): ToolFact {
  // Of what stands twice, somebody else may read the other.
  if (duplicateKey(tool) !== undefined) return { digest: digestOf(canonical(write(tool))), hints: {} }
  const telling = TELLING.flatMap((key) => {
    const text = raw(tool, key)
    return text === undefined ? [] : [`${key} ${canonical(text)}`]
  })
  return { digest: digestOf(telling.join('\n')), hints: hintsOf(objectIn(tool, 'annotations')) }
}

function hintsOf(annotations: Payload | undefined): ToolFact['hints'] {
  if (!annotations || duplicateKey(annotations) !== undefined) return {}
  const hints = keys(annotations).map((key) => [key, raw(annotations, key)] as const)
  const said = hints.filter(([, text]) => text === 'true' || text === 'false')
  return Object.fromEntries(said.map(([key, text]) => [key, text === 'true']))
}

/** Two tools of one name: which of them is called, only the server knows, so that a hint counts if both have it. */
function both(one: ToolFact, other: ToolFact): ToolFact {
  const agreed = Object.entries(one.hints).filter(([key, says]) => other.hints[key] === says)
  return { digest: digestOf([one.digest, other.digest].sort().join('\n')), hints: Object.fromEntries(agreed) }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
