/** Questions of servers to the clients of a group: each says which server asks, and names resources as the group does. */
import { edit, keys, objectIn, type Payload, value } from '../rpc/splice.js'
import { printable } from '../texts/printable.js'
import type { Member } from './member.js'
import { type Replace, replaced } from './places.js'

const SAMPLE = 'sampling/createMessage'
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

function shownIn(method: unknown, params: Payload, { server }: Member, replace: Replace): Payload {
  if (method === SAMPLE) return replaced(SAMPLE, params, replace)
  if (method !== 'elicitation/create') return params
  const message = value(params, 'message') ?? ''
  if (typeof message !== 'string') return params
  return edit(params, { message: JSON.stringify(`${printable(server)}: ${message.replace(OVERWRITING, '')}`) })
}
