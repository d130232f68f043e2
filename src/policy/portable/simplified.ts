/** What portable schemas make of a list of tools: what `mcp-bridge probe` says. */
import { arrayIn, objectIn, type Payload, payloadAt, stringUnder } from '../../rpc/splice.js'
import { formOf } from './portable.js'

/** A tool whose schema is simplified for models, or has to stay as it is. */
export interface Simplified {
  tool: string
  /** What has been simplified beyond keywords. */
  notes?: readonly string[]
  /** Why it stays as it is. */
  why?: string
}

/** The tools of a page, as the server lists them, with schemas that are not portable. */
export function simplifiedIn(page: Payload): Simplified[] {
  const array = arrayIn(page, 'tools')
  return (array?.elements ?? []).flatMap((place) => {
    const tool = array && payloadAt(array.source, place)
    const schema = tool && objectIn(tool, 'inputSchema')
    const form = schema && formOf(schema)
    if (!form) return []
    const name = stringUnder(tool, 'name') ?? ''
    return 'why' in form ? { tool: name, why: form.why } : { tool: name, notes: form.notes }
  })
}
