/** The `Implementation` of MCP: the name and the version of a client or a server. */
import { memoize } from '../../base/rpc/memoize.js'
import { EMPTY, type Json, parseObject, stringUnder, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'

/** Whether a JSON value is an object with a name and a version. */
export const isImplementation = memoize((info): boolean => {
  const implementation = info.startsWith('{') ? parseObject(info) : EMPTY
  return typeof value(implementation, 'name') === 'string' && typeof value(implementation, 'version') === 'string'
})

/** Most characters of a client's name in a question, and in a metric. */
const ASKING_CLIENT = 60
const COUNTED_CLIENT = 64

const nameIn = memoize((info) => (info.startsWith('{') ? stringUnder(parseObject(info), 'name') : undefined))

/** The name of a client, by its own account, for people; undefined if it states none. */
export function shownName(info: Json | undefined, most = ASKING_CLIENT): string | undefined {
  const name = info === undefined ? undefined : nameIn(info)
  return name === undefined ? undefined : printable(name, most)
}

/** The name of a client, for the metric of HTTP+SSE: `unknown` if it says none. */
export function nameOfClient(info: Json): string {
  return shownName(info, COUNTED_CLIENT) || 'unknown'
}
