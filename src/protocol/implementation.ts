/** The `Implementation` of MCP: the name and the version of a client or a server. */
import { memoize } from '../rpc/memoize.js'
import { EMPTY, parseObject, value } from '../rpc/splice.js'

/** Whether a JSON value is an object with a name and a version. */
export const isImplementation = memoize((info): boolean => {
  const implementation = info.startsWith('{') ? parseObject(info) : EMPTY
  return typeof value(implementation, 'name') === 'string' && typeof value(implementation, 'version') === 'string'
})
