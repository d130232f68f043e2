/** Questions of servers to the clients of a group: each says which server asks. */
import { edit, keys, objectIn, type Payload, value } from '../rpc/splice.js'
import { printable } from '../texts/printable.js'
import type { Member } from './member.js'

/** Control characters with which a terminal would overwrite the name: all but tabs and line breaks. */
const OVERWRITING = /[^\P{Cc}\t\n]/gu

/** `inputRequests`, of a call or a task, in which messages for people begin with the name of the server, whatever else they say. */
export function signed({ server }: Member, input: Payload): Payload {
  const requests = objectIn(input, 'inputRequests')
  if (!requests) return input
  const named = keys(requests).flatMap((key) => {
    const request = objectIn(requests, key)
    const params = request && objectIn(request, 'params')
    if (!params || value(request, 'method') !== 'elicitation/create') return []
    const message = value(params, 'message') ?? ''
    if (typeof message !== 'string') return []
    const text = JSON.stringify(`${printable(server)}: ${message.replace(OVERWRITING, '')}`)
    return [[key, edit(request, { params: edit(params, { message: text }) })] as const]
  })
  return named.length === 0 ? input : edit(input, { inputRequests: edit(requests, Object.fromEntries(named)) })
}
