/** Results as older clients take them, other than those of calls of tools. */
import { objectIn, type Payload } from '../../rpc/splice.js'
import { fewCompletions } from '../lift.js'
import { shownBlock } from './content.js'
import { fit, relax } from './fit.js'
import { inArray, inObject, keepMembers } from './members.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'

/** Capabilities that are objects by names of others' choice. */
const OPEN_CAPABILITIES = ['experimental', 'extensions'] as const

/** A page of a list, each item as `tell` has it. What a client could do nothing with must not cost it the rest. */
export function page(
  result: Payload,
  key: string,
  tell: (item: Payload) => Payload | undefined,
  to: Downlevel,
): Payload {
  const none = () => {
    to.lost('malformed items')
    return []
  }
  return inArray(relax(result, shapes.listResult, to), key, (item) => tell(item) ?? none(), none)
}

export function promptResult(result: Payload, to: Downlevel): Payload {
  return inArray(relax(result, shapes.promptResult, to), 'messages', (message) =>
    inObject(message, 'content', (block) => shownBlock(block, to)),
  )
}

export function readResult(result: Payload, to: Downlevel): Payload {
  return inArray(relax(result, shapes.readResult, to), 'contents', (one) => fit(one, shapes.contents, to) ?? one)
}

export function completeResult(result: Payload, to: Downlevel): Payload {
  const fitting = relax(result, shapes.completeResult, to)
  const few = fewCompletions(fitting)
  if (few !== fitting) to.lost('completions beyond the first hundred')
  return few
}

/** What a server says of itself, in the answer to `initialize`: one bad icon can cost a client the whole session. */
export function initializeResult(result: Payload, to: Downlevel): Payload {
  const told = inObject(relax(result, shapes.initializeResult, to), 'serverInfo', (server) => {
    return fit(server, shapes.implementation, to) ?? server
  })
  return inObject(told, 'capabilities', (offered) => {
    const fitting = fit(offered, shapes.serverCapabilities, to) ?? offered
    return OPEN_CAPABILITIES.reduce((all, name) => inObject(all, name, (one) => withObjects(one, name, to)), fitting)
  })
}

/** The object with the members that are objects themselves. */
function withObjects(object: Payload, name: string, to: Downlevel): Payload {
  const kept = keepMembers(object, (key) => objectIn(object, key) !== undefined)
  if (kept !== object) to.lost(name)
  return kept
}
