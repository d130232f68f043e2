/** Adapts results to older clients, except the results of tool calls. */
import { objectIn, type Payload } from '../../../base/rpc/splice.js'
import { withList, withMessageBlocks } from '../content.js'
import { fewCompletions } from '../lift.js'
import { shownBlock } from './content.js'
import { fit, relax } from './fit.js'
import { inArray, inObject, keepMembers } from './members.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'

/** Capabilities whose members have free names. */
const OPEN_CAPABILITIES = ['experimental', 'extensions'] as const

/**
 * A page of a list, with each item adapted by `adapt`. Items that a client cannot use are dropped, because they would cost
 * it the whole page.
 */
export function page(
  result: Payload,
  key: string,
  adapt: (item: Payload) => Payload | undefined,
  to: Downlevel,
): Payload {
  const none = () => {
    to.lost('malformed items')
    return []
  }
  return inArray(relax(result, shapes.listResult, to), key, (item) => adapt(item) ?? none(), none)
}

export function promptResult(result: Payload, to: Downlevel): Payload {
  return inArray(relax(withMessageBlocks(result), shapes.promptResult, to), 'messages', (message) =>
    inObject(message, 'content', (block) => shownBlock(block, to)),
  )
}

export function readResult(result: Payload, to: Downlevel): Payload {
  return inArray(
    relax(withList(result, 'contents'), shapes.readResult, to),
    'contents',
    (one) => fit(one, shapes.contents, to) ?? one,
  )
}

export function completeResult(result: Payload, to: Downlevel): Payload {
  const fitting = relax(result, shapes.completeResult, to)
  const few = fewCompletions(fitting)
  if (few !== fitting) to.lost('completions beyond the first hundred')
  return few
}

/** The answer to `initialize`. @modelcontextprotocol/sdk 1.x refuses to connect if, for example, one icon is invalid. */
export function initializeResult(result: Payload, to: Downlevel): Payload {
  const adapted = inObject(relax(result, shapes.initializeResult, to), 'serverInfo', (server) => {
    return fit(server, shapes.implementation, to) ?? server
  })
  return inObject(adapted, 'capabilities', (offered) => {
    const fitting = fit(offered, shapes.serverCapabilities, to) ?? offered
    return OPEN_CAPABILITIES.reduce((all, name) => inObject(all, name, (one) => withObjects(one, name, to)), fitting)
  })
}

/** The object without members that are not objects. */
function withObjects(object: Payload, name: string, to: Downlevel): Payload {
  const kept = keepMembers(object, (key) => objectIn(object, key) !== undefined)
  if (kept !== object) to.lost(name)
  return kept
}
