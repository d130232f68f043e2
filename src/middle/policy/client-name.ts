/** The name of a client, by its own account, for people. */
import { type Json, parseObject, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'

/** Most characters of the name of a client. */
const MAX_ASKING_CLIENT = 60

/** Undefined if it states none. */
export function clientNameOf(clientInfo: Json | undefined): string | undefined {
  const name = clientInfo === undefined ? undefined : value(parseObject(clientInfo), 'name')
  return typeof name === 'string' ? printable(name, MAX_ASKING_CLIENT) : undefined
}
