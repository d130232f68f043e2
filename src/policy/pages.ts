/** Reads the lists of a server for the bridge itself, page by page. */

import { Fault } from '../fault/fault.js'
import { MAX_PAGES } from '../limits/constants.js'
import { type Call, type Final, type Handler, unheard, unlogged } from '../protocol/call.js'
import { nextCursor } from '../protocol/listed.js'
import { EMPTY, edit, type Json, NO_PARAMS, OWN, type Payload } from '../rpc/splice.js'
import { printable } from '../texts/printable.js'
import { HangUp } from '../time/hang-up.js'
import { Deadline } from '../time/time.js'

/** Asks for the page at a cursor; for the first one without a cursor. */
export type FetchPage = (cursor: Json | undefined) => Promise<Payload>

/** Milliseconds for reading all pages of a list. */
const LIST_TIMEOUT = 30_000

/**
 * Reads a list of the server with `read`, as the caller of `asked` but independently of that call. Rejects with a Fault,
 * also after LIST_TIMEOUT.
 */
export async function reading<T>(
  asked: Call,
  method: string,
  next: Handler,
  server: string,
  read: (page: FetchPage) => Promise<T>,
): Promise<T> {
  const hangUp = new HangUp()
  const late = () =>
    hangUp.abort(new Fault('upstreamTimeout', `The server did not answer ${method} within ${LIST_TIMEOUT / 1000} s`))
  const timer = new Deadline(LIST_TIMEOUT, late)
  const { paramHeaders: _none, ...caller } = asked
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
      params: cursor === undefined ? NO_PARAMS : edit(OWN, { cursor }),
      answers: undefined,
      progress: false,
      tell: unheard,
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
    return await read(page)
  } finally {
    timer.clear()
  }
}

/** All pages of a list. Rejects with a Fault after MAX_PAGES pages. */
export async function pagesOf(page: FetchPage): Promise<Payload[]> {
  const pages: Payload[] = []
  let cursor: Json | undefined
  do {
    if (pages.length === MAX_PAGES)
      throw new Fault('upstreamProtocol', `The list of the server has more than ${MAX_PAGES} pages`)
    pages.push(await page(cursor))
    cursor = nextCursor(pages.at(-1) as Payload)
  } while (cursor !== undefined)
  return pages
}
