/** Reads pages of lists: the cursor of the next page, and the names of tools and prompts with the methods that use them. */

import { detach } from '../../base/rpc/source.js'
import { arrayIn, type Json, type Payload, payloadAt, raw, value } from '../../base/rpc/splice.js'
import { CALL_TOOL, LISTS } from './methods.js'

const CALLERS: ReadonlyMap<string, string> = new Map([
  ['tools/list', CALL_TOOL],
  ['prompts/list', 'prompts/get'],
])

/** The method that uses the names in the list of `method`; undefined if `method` lists no such names. */
export function callerOf(method: string): string | undefined {
  return CALLERS.get(method)
}

/** Whether the cursor of a request for a list stands for the first page. */
export function isFirst(cursor: Json | undefined): cursor is undefined | 'null' {
  return cursor === undefined || cursor === 'null'
}

/** The cursor of the next page; undefined after the last one. */
export function nextCursor(page: Payload): Json | undefined {
  const next = raw(page, 'nextCursor')
  return next?.startsWith('"') ? next : undefined
}

/** The names on a page of a list. */
export function* namesOn(page: Payload, method: string): Generator<string> {
  const items = arrayIn(page, LISTS.get(method)?.key ?? '')
  for (const span of items?.elements ?? []) {
    const item = items && payloadAt(items.source, span)
    const name = item && value(item, 'name')
    if (typeof name === 'string') yield detach(name)
  }
}
