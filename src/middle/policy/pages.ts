/** Reads the lists of a server for the bridge itself, page by page. */

import { Fault } from '../../base/fault/fault.js'
import { MAX_LIST_BYTES, MAX_LIST_TIME, MAX_PAGES } from '../../base/limits/constants.js'
import { weightOf } from '../../base/rpc/source.js'
import { EMPTY, edit, type Json, NO_ORIGIN, NO_PARAMS, type Payload } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import { HangUp } from '../../base/time/hang-up.js'
import { Deadline } from '../../base/time/time.js'
import { type Call, type Final, type Handler, ignoreNotifications, unlogged } from '../../mcp/protocol/call.js'
import { nextCursor } from '../../mcp/protocol/listed.js'

/** The pages of a list, which are fetched as they are read. */
export type Pages = AsyncIterable<Payload>

/** Asks for the page at a cursor; for the first one without a cursor. */
type FetchPage = (cursor: Json | undefined) => Promise<Payload>

/**
 * Reads a list of the server with `read`, as the caller of `asked` but independently of that call. Rejects with a Fault,
 * also after MAX_LIST_TIME.
 */
export async function reading<T>(
  asked: Call,
  method: string,
  next: Handler,
  server: string,
  read: (pages: Pages) => Promise<T>,
): Promise<T> {
  const hangUp = new HangUp()
  const late = () =>
    hangUp.abort(new Fault('upstreamTimeout', `The server did not answer ${method} within ${MAX_LIST_TIME / 1000} s`))
  const timer = new Deadline(MAX_LIST_TIME, late)
  // Not what the client sent: its id would be at the server twice.
  const { paramHeaders: _none, received: _other, ...caller } = asked
  /** The answer; undefined if the server does not know the method, because it has nothing to list. */
  const answered = async (call: Call): Promise<Final | undefined> => {
    try {
      const last = await next(call)
      return last.kind === 'error' && last.error.code === -32601 ? undefined : last
    } catch (error) {
      if (error instanceof Fault && error.fault === 'methodNotFound') return undefined
      throw error
    }
  }
  const page: FetchPage = async (cursor) => {
    const last = await answered({
      ...caller,
      method,
      params: cursor === undefined ? NO_PARAMS : edit(NO_ORIGIN, { cursor }),
      answers: undefined,
      progress: false,
      notify: ignoreNotifications,
      signal: hangUp,
      abort: (reason) => hangUp.abort(reason),
      log: unlogged,
    })
    if (!last) return EMPTY
    if (last.kind === 'result') return last.result
    if (last.kind === 'error')
      throw new Fault('upstreamRefused', `${server} refused to answer ${method}: ${printable(last.error.message)}`)
    throw new Fault('upstreamProtocol', `${server} ended ${method} without a result`)
  }
  try {
    return await read(pagesOf(page))
  } finally {
    timer.clear()
  }
}

/** All pages of a list. Throws a Fault after MAX_PAGES pages, or MAX_LIST_BYTES. */
export async function* pagesOf(page: FetchPage): AsyncGenerator<Payload> {
  let cursor: Json | undefined
  let bytes = 0
  for (let pages = 0; pages < MAX_PAGES && bytes < MAX_LIST_BYTES; pages++) {
    const one = await page(cursor)
    bytes += weightOf(one.source)
    yield one
    cursor = nextCursor(one)
    if (cursor === undefined) return
  }
  const most = `${MAX_PAGES} pages or ${MAX_LIST_BYTES} bytes`
  throw new Fault('upstreamProtocol', `The list of the server has more than ${most}`)
}
