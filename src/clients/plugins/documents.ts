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

/** Serves a JSON document that everybody may read, including pages of other origins. */
export function publish(app: FastifyInstance, path: string, document: () => string | Promise<string>): void {
  allowPages(app, path)
  app.get(path, OF_DOCUMENT, async (_request, reply) =>
    reply
      .type('application/json')
      .header('cache-control', 'max-age=300')
      .headers(FOR_PAGES)
      .send(await document()),
  )
}

/** Parses submitted forms as URLSearchParams. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: FORM_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  )
}
