/** The forms of requests and answers that the routes of OAuth share: public JSON documents, and submitted forms. */
import type { FastifyInstance } from 'fastify'

/** Most bytes of a form, and of a registration. */
export const FORM_BYTES = 64 * 1024

/** Serves a JSON document that everybody may read, including pages of other origins. */
export function publish(app: FastifyInstance, path: string, document: () => string | Promise<string>): void {
  app.get(path, async (_request, reply) =>
    reply
      .type('application/json')
      .header('cache-control', 'max-age=300')
      .header('access-control-allow-origin', '*')
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
