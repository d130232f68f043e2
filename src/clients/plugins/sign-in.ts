/** Serves the page where people sign in to servers with their own accounts. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BrowserAnswer, BrowserRequest } from '../../mcp/ports/browser.js'
import { acceptForms, FORM_BYTES } from './documents.js'

/** The handler for browsers, and its paths. */
export interface SignInRoutes {
  path: string
  answer(request: BrowserRequest): Promise<BrowserAnswer>
}

/** All paths of the page. They require no token, because the page identifies the person itself. */
export function signInPaths(path: string): readonly string[] {
  return [path, `${path}/:first`, `${path}/:first/:second`]
}

export async function signInPage(app: FastifyInstance, { path, answer }: SignInRoutes): Promise<void> {
  acceptForms(app)
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, headers, url, body, grant, principal } = request
    if (app.countRequest) await app.countRequest(request)
    const { first, second } = request.params as { first?: string; second?: string }
    const name = grant?.subject
    const answered = await answer({
      method,
      path: [first, second].filter((one) => one !== undefined),
      query: new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''),
      form: body instanceof URLSearchParams ? body : new URLSearchParams(),
      cookies: headers.cookie,
      origin: headers.origin,
      site: typeof headers['sec-fetch-site'] === 'string' ? headers['sec-fetch-site'] : undefined,
      proxied: name === undefined ? undefined : { principal, who: name },
    })
    if (answered.isWrong && app.countWrongToken) await app.countWrongToken(request)
    return reply.code(answered.status).headers(answered.headers).send(answered.body)
  }
  for (const one of signInPaths(path)) app.route({ method: ['GET', 'POST'], url: one, bodyLimit: FORM_BYTES, handler })
}
