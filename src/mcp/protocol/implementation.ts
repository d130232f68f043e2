/** The `Implementation` of MCP: the name and the version of a client or a server. */
import { memoize } from '../../base/rpc/memoize.js'
import { EMPTY, parseObject, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'

/** Whether a JSON value is an object with a name and a version. */
export const isImplementation = memoize((info): boolean => {
  const implementation = info.startsWith('{') ? parseObject(info) : EMPTY
  return typeof value(implementation, 'name') === 'string' && typeof value(implementation, 'version') === 'string'
})

/** Most characters of a client's name in a metric. */
const CLIENT_NAME = 64

/** The name of a client, for the metric of HTTP+SSE: `unknown` if it says none. */
export const nameOfClient = memoize((info): string => {
  const name = info.startsWith('{') ? value(parseObject(info), 'name') : undefined
  return typeof name === 'string' && name !== '' ? printable(name, CLIENT_NAME) : 'unknown'
})
