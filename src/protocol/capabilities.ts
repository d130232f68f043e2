/** What a client can do, as far as it is said across eras. */
import { memoize } from '../rpc/memoize.js'
import { EMPTY, edit, has, type Json, keys, objectIn, parseObject, value, write } from '../rpc/splice.js'
import { TASKS_EXTENSION } from './meta.js'

/** Capabilities as they are declared to a server of the other era: what the client declared and the bridge can deliver. */
export function carriedCapabilities(capabilities: Json): Json {
  const declared = parseObject(capabilities)
  const out: Record<string, Json> = {}
  const elicitation = objectIn(declared, 'elicitation')
  if (elicitation) {
    const form = has(elicitation, 'form')
    const url = has(elicitation, 'url')
    // `{}` says form in every revision that has the word, so it is said that way unless there is more to say.
    out['elicitation'] = url ? (form ? '{"form":{},"url":{}}' : '{"url":{}}') : '{}'
  }
  const sampling = objectIn(declared, 'sampling')
  if (sampling) out['sampling'] = write(sampling)
  // `listChanged` would promise a notification that modern clients do not have, and that modern servers do not know.
  if (objectIn(declared, 'roots')) out['roots'] = '{}'
  const extensions = objectIn(declared, 'extensions')
  if (extensions) {
    const carried = edit(extensions, { [TASKS_EXTENSION]: undefined })
    if (keys(carried).length > 0) out['extensions'] = write(carried)
  }
  const experimental = objectIn(declared, 'experimental')
  if (experimental) out['experimental'] = write(experimental)
  return write(edit(EMPTY, out))
}

const MAX_NAME = 256

/** Name and version out of a client's Implementation, as a key. Cut off where they are long. */
export const clientName = memoize((clientInfo): string => {
  const said = parseObject(clientInfo)
  return JSON.stringify([value(said, 'name'), value(said, 'version')]).slice(0, MAX_NAME)
})

/** Whether a client has agreed to be asked anything at all in the middle of a call. */
export const canBeAsked = memoize((capabilities): boolean => {
  const declared = parseObject(capabilities)
  return ['elicitation', 'sampling', 'roots'].some((name) => objectIn(declared, name) !== undefined)
})
