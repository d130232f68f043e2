/** Questions of servers to the clients of a group: each says which server asks, and names resources as the group does. */

import {
  EMPTY,
  edit,
  keys,
  mapElements,
  objectIn,
  type Payload,
  parseObject,
  value,
  write,
} from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import type { RpcError } from '../../mcp/protocol/call.js'
import type { Member } from './member.js'
import { type Replace, replaced } from './places.js'

const SAMPLE = 'sampling/createMessage'
/** The code of an error that asks a person to open addresses (MCP 2025-11-25). */
const URL_ELICITATION_REQUIRED = -32042
/** Control characters with which a terminal would overwrite the name: all but tabs and line breaks. */
const OVERWRITING = /[^\P{Cc}\t\n]/gu

/**
 * `inputRequests`, of a call or a task, in the names of the group: messages for people begin with the name of the server, whatever
 * else they say, and resources for a model have their URIs in the group.
 */
export function signed(member: Member, input: Payload, replace: Replace): Payload {
  const requests = objectIn(input, 'inputRequests')
  if (!requests) return input
  const changed = keys(requests).flatMap((key) => {
    const request = objectIn(requests, key)
    const params = request && objectIn(request, 'params')
    if (!params) return []
    const shown = shownIn(value(request, 'method'), params, member, replace)
    return shown === params ? [] : [[key, edit(request, { params: shown })] as const]
  })
  return changed.length === 0 ? input : edit(input, { inputRequests: edit(requests, Object.fromEntries(changed)) })
}

/** An error that asks a person to open addresses, with the name of the server in its messages. */
export function signedError({ server }: Member, error: RpcError): RpcError {
  const data = error.code === URL_ELICITATION_REQUIRED && error.data?.startsWith('{') ? parseObject(error.data) : EMPTY
  const elicitations = mapElements(data, 'elicitations', (one) => withName(server, one))
  return elicitations ? { ...error, data: write(edit(data, { elicitations })) } : error
}

function shownIn(method: unknown, params: Payload, { server }: Member, replace: Replace): Payload {
  if (method === SAMPLE) return replaced(SAMPLE, params, replace)
  return method === 'elicitation/create' ? withName(server, params) : params
}

/** What asks a person, with a message that begins with the name of the server. */
function withName(server: string, asking: Payload): Payload {
  const message = value(asking, 'message') ?? ''
  if (typeof message !== 'string') return asking
  return edit(asking, { message: JSON.stringify(`${printable(server)}: ${message.replace(OVERWRITING, '')}`) })
}
