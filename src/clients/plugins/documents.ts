/** The forms of requests and answers that the routes of OAuth share: public JSON documents, and submitted forms. */
import type { FastifyInstance } from 'fastify'
import { FOR_PAGES, PREFLIGHT } from '../../base/texts/for-pages.js'

/** Most bytes of a form, and of a registration. */
export const FORM_BYTES = 64 * 1024

/** Options of the routes of a document that pages of all origins may read: it is the same for all of them. */
export const OF_DOCUMENT = { config: { cors: false } } as const

/** Answers browsers that ask whether a page may read a document. */
export function allowPages(app: FastifyInstance, path: string): void {
  app.options(path, OF_DOCUMENT, async (_request, reply) => reply.code(204).headers(PREFLIGHT).send())
}

/** A document, which is JSON that may be cached for five minutes unless it says otherwise. */
interface Published {
  body: string | Uint8Array
  type?: string
  cacheControl?: string
}

/** Serves a document that everybody may read, including pages of other origins. */
export function publish(app: FastifyInstance, path: string, document: () => Published | Promise<Published>): void {
  allowPages(app, path)
  app.get(path, OF_DOCUMENT, async (_request, reply) => {
    const { body, type = 'application/json', cacheControl = 'max-age=300' } = await document()
    return reply
      .type(type)
      .headers({ ...FOR_PAGES, 'cache-control': cacheControl })
      .send(typeof body === 'string' ? body : Buffer.from(body))
  })
}

/** Parses submitted forms as URLSearchParams. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: FORM_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  )
}
