/** Answers in the place of a server, in the way in which a client and its model read it. */
import type { Call, Reply } from '../protocol/call.js'
import { parseObject, value } from '../rpc/splice.js'

export interface Refusal {
  /** In one word, for programs. */
  reason: string
  /** In a sentence or two, for people and models. */
  text: string
  /** What else programs may want to know. */
  data?: Readonly<Record<string, unknown>>
}

/** Begins the names of what the bridge adds to what servers say. */
export const OWN = 'io.github.mcp-bridge/'

/** A call of a tool gets a result that says why it failed, because that is what a model sees; anything else an error. */
export function refuse(call: Call, { reason, text, data = {} }: Refusal): Reply {
  call.log.note({ refused: reason })
  if (call.method !== 'tools/call')
    return {
      kind: 'error',
      error: { code: -32603, message: text, data: JSON.stringify({ reason, outcome: 'not_executed', ...data }) },
    }
  const result = { content: [{ type: 'text', text }], isError: true, _meta: { [OWN + reason]: data } }
  return { kind: 'result', result: parseObject(JSON.stringify(result)) }
}

/**
 * The tool that a call is of. Undefined where it is called by no name, or by one that another program may read as another:
 * some take the first of two equal names, and some names in whatever case.
 */
export function toolOf({ params }: Call): string | undefined {
  const [only, ...others] = params.members.filter(({ key }) => key.toLowerCase() === 'name')
  if (only?.key !== 'name' || others.length > 0) return undefined
  const name = value(params, 'name')
  return typeof name === 'string' ? name : undefined
}
