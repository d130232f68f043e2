/** Translates the capabilities of clients between eras. */
import { memoize } from '../../base/rpc/memoize.js'
import { EMPTY, edit, has, type Json, keys, objectIn, parseObject, value, write } from '../../base/rpc/splice.js'
import { TASKS_EXTENSION } from './meta.js'

/**
 * The capabilities to declare to a server of the other era: those of the client that the bridge can translate.
 */
export function forwardedCapabilities(capabilities: Json): Json {
  const declared = parseObject(capabilities)
  const out: Record<string, Json> = {}
  const elicitation = objectIn(declared, 'elicitation')
  if (elicitation) {
    const form = has(elicitation, 'form')
    const url = has(elicitation, 'url')
    // `{}` means forms in every revision that has elicitation, so it stays unless URLs are declared.
    out['elicitation'] = url ? (form ? '{"form":{},"url":{}}' : '{"url":{}}') : '{}'
  }
  const sampling = objectIn(declared, 'sampling')
  if (sampling) out['sampling'] = write(sampling)
  // `listChanged` would promise a notification that modern clients and servers do not have.
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

/** Whether a legacy client promises to report changes of its roots. */
export function reportsRoots(capabilities: Json): boolean {
  const roots = objectIn(parseObject(capabilities), 'roots')
  return roots !== undefined && value(roots, 'listChanged') === true
}

/** Capabilities with the promise to report changes of roots, if there are roots. */
export const withRootChanges = memoize((capabilities): Json => {
  const declared = parseObject(capabilities)
  return objectIn(declared, 'roots') ? write(edit(declared, { roots: '{"listChanged":true}' })) : capabilities
})

const MAX_CLIENT_NAME = 256

/** Name and version from a client's Implementation, as a key of at most MAX_CLIENT_NAME characters. */
export const clientName = memoize((clientInfo): string => {
  const said = parseObject(clientInfo)
  return JSON.stringify([value(said, 'name'), value(said, 'version')]).slice(0, MAX_CLIENT_NAME)
})

/** Whether a client has declared a capability with which a server may ask it a question during a call. */
export const canBeAsked = memoize((capabilities): boolean => {
  const declared = parseObject(capabilities)
  return ['elicitation', 'sampling', 'roots'].some((name) => objectIn(declared, name) !== undefined)
})
