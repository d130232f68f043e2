/** Everything that a server offers, as it arrives at a client: the answers to the same questions, to be compared. */
type Json = Record<string, unknown>

/** A client of either SDK, as far as it is used. Rejects with what the server answered where that is an error. */
export interface Asker {
  /** What the server said of itself. */
  opened: Json
  ask(method: string, params: Json): Promise<Json>
}

export interface Questions {
  calls: readonly (readonly [tool: string, args: Json])[]
  prompts?: readonly (readonly [name: string, args: Json])[]
}

/** An answer, by what was asked. */
export type Offer = [asked: string, answer: unknown][]

const LISTS = [
  { capability: 'tools', method: 'tools/list', key: 'tools' },
  { capability: 'prompts', method: 'prompts/list', key: 'prompts' },
  { capability: 'resources', method: 'resources/list', key: 'resources' },
  { capability: 'resources', method: 'resources/templates/list', key: 'resourceTemplates' },
] as const
/** Resources that are read. */
const READ = 5
const MAX_PAGES = 50

/** Asks for all that there is: what the server says of itself, its lists page by page, resources, prompts, calls and errors. */
export async function offerOf(asker: Asker, { calls, prompts = [] }: Questions): Promise<Offer> {
  const offer: Offer = [['what it says of itself', asker.opened]]
  const capabilities = asker.opened['capabilities'] as Json
  const ask = async (method: string, params: Json): Promise<Json> => {
    const answer = await asker.ask(method, params).catch((error: unknown) => ({ error: errorOf(error) }))
    offer.push([`${method} ${JSON.stringify(params)}`, answer])
    return answer
  }
  const uris: unknown[] = []
  for (const { capability, method, key } of LISTS) {
    if (!(capability in capabilities)) continue
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const answer = await ask(method, cursor === undefined ? {} : { cursor })
      if (key === 'resources') uris.push(...((answer[key] as Json[]) ?? []).map(({ uri }) => uri))
      cursor = answer['nextCursor']
      if (cursor === undefined || cursor === null) break
    }
  }
  if ('resources' in capabilities) {
    for (const uri of [...uris.slice(0, READ), 'nobody://has/this']) await ask('resources/read', { uri })
  }
  for (const [name, args] of prompts) await ask('prompts/get', { name, arguments: args })
  if ('tools' in capabilities) {
    for (const [name, args] of [...calls, ['nobody has this', {}] as const])
      await ask('tools/call', { name, arguments: args })
  }
  return offer
}

/** What an error of the server says, whichever SDK has made it one. */
function errorOf(error: unknown): Json {
  const { code, message, data } = error as { code?: unknown; message?: string; data?: unknown }
  return { code, message, ...(data !== undefined && { data }) }
}
