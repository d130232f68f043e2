/** Adapts sampling requests to older clients. */
import { arrayIn, edit, objectIn, type Payload, payloadAt, value } from '../../../base/rpc/splice.js'
import { sampledBlock } from './content.js'
import { fit } from './fit.js'
import { inArray, inObject } from './members.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'
import { sampledTool } from './tools.js'

/** `capabilities` are those that the client declared. */
export function samplingParams(params: Payload, capabilities: Payload, to: Downlevel): Payload {
  const fitting = fit(withinCapabilities(params, capabilities, to), shapes.sampling, to) ?? params
  const adapted = inArray(fitting, 'tools', (tool) => sampledTool(tool, to) ?? [])
  return inArray(adapted, 'messages', (message) => samplingMessage(message, to))
}

function withinCapabilities(params: Payload, capabilities: Payload, to: Downlevel): Payload {
  const declared = objectIn(capabilities, 'sampling')
  const declares = (name: string) => declared !== undefined && objectIn(declared, name) !== undefined
  let within = params
  if (!declares('tools')) within = edit(within, { tools: undefined, toolChoice: undefined })
  if (within !== params) to.lost('samplingTools')
  const context = value(within, 'includeContext')
  if (context === undefined || context === 'none' || !to.traits.contextCapability || declares('context')) return within
  to.lost('includeContext')
  return edit(within, { includeContext: undefined })
}

/** The message; one message for each block, if messages of the revision have only one. */
function samplingMessage(message: Payload, to: Downlevel): Payload | readonly Payload[] {
  const fitting = fit(message, shapes.samplingMessage, to) ?? message
  const blocks = arrayIn(fitting, 'content')
  if (!blocks) return inObject(fitting, 'content', (block) => sampledBlock(block, to))
  if (to.traits.samplingTools) return inArray(fitting, 'content', (block) => sampledBlock(block, to))
  return blocks.elements.flatMap((span) => {
    const block = payloadAt(blocks.source, span)
    return block ? edit(fitting, { content: sampledBlock(block, to) }) : []
  })
}
