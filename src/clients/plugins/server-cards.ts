/** Serves the server cards of what the bridge serves, and the AI Catalog that names them. */
import type { FastifyInstance } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { FOR_PAGES } from '../../base/texts/for-pages.js'
import { allowPages, OF_DOCUMENT } from './documents.js'

/** Where the documents come from. */
export interface ServerCardsOptions {
  cardPaths: readonly string[]
  /** The current document at a path; undefined if there is none. */
  card(path: string): Promise<{ text: string; type: string; etag: string } | undefined>
}

/** For how long they may be cached: a server may change its version at any time. */
const CACHED = 'public, max-age=300'

/** A Fastify plugin that serves all documents. Who knows one by its ETag gets it again only if it has changed. */
export async function serverCards(app: FastifyInstance, { cardPaths, card }: ServerCardsOptions): Promise<void> {
  for (const path of cardPaths) {
    allowPages(app, path)
    app.get(path, OF_DOCUMENT, async (request, reply) => {
      const document = await card(path)
      if (!document) throw new Fault('noSuchPath', 'The server has not described itself yet, or is not published')
      const { text, type, etag } = document
      reply.headers({
        ...FOR_PAGES,
        'access-control-expose-headers': 'etag',
        'cache-control': CACHED,
        vary: 'accept',
        etag,
      })
      if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return reply.type(type).send(text)
    })
  }
}

/** Whether `If-None-Match` names this version. Proxies may have made its tag a weak one. */
function isKnown(header: string | undefined, etag: string): boolean {
  const tags = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes(etag) || tags.includes('*')
}
