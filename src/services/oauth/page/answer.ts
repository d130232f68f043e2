/** The answers of the page to browsers. */
import type { BrowserAnswer } from '../../../mcp/ports/browser.js'
import { type Content, document, HEADERS, type PageContext } from './html.js'

/** The answer with a page. */
export function shown(
  content: Content,
  context: PageContext,
  status = 200,
  ...cookies: (string | undefined)[]
): BrowserAnswer {
  const given = cookies.filter((one) => one !== undefined)
  const leaves = content.onTo === undefined ? {} : { 'referrer-policy': 'no-referrer' }
  const headers = { ...HEADERS, ...leaves, ...(given.length > 0 && { 'set-cookie': given }) }
  return { status, headers, body: document(content, context) }
}

/** The answer that sends the browser to another place. */
export function redirect(location: string, ...cookies: string[]): BrowserAnswer {
  const headers = { ...HEADERS, location, ...(cookies.length > 0 && { 'set-cookie': cookies }) }
  return { status: 303, headers, body: '' }
}
