/** The form in which people enter their own key for a server. A key that is stored is never shown. */
import { type Content, escaped, form, hidden, type PageContext } from './html.js'

/** Who asks a person for which key. */
export interface AskedKey {
  server: string
  host: string
  /** The person has entered one before. */
  isStored: boolean
  client: string | undefined
  ticket: string | undefined
  /** Why the key that was entered is none. */
  wrong?: string | undefined
}

/** Most characters of a key. */
const MAX_ENTERED_KEY = 4_096
/** What a header can have without another meaning. */
const SENDABLE = /^[\x20-\x7e]+$/

/** The key that a person has entered, or why it is none. White space around it comes with pasting. */
export function enteredKey(text: string | null): { entered: string } | { wrong: string } {
  const entered = text?.trim() ?? ''
  if (entered === '') return { wrong: 'Enter a key.' }
  if (entered.length > MAX_ENTERED_KEY) return { wrong: `A key has at most ${MAX_ENTERED_KEY} characters.` }
  return SENDABLE.test(entered)
    ? { entered }
    : { wrong: 'A key has only letters, digits and signs of ASCII, in one line.' }
}

/** Asks for the key. */
export function keyForm(asked: AskedKey, { base, secret }: PageContext): Content {
  const { server, host, isStored, client, ticket, wrong } = asked
  const notice = wrong === undefined ? '' : `<p class="notice" role="alert">${escaped(wrong)}</p>`
  const by =
    client === undefined ? '' : `<dt>Asked for by</dt><dd>${escaped(`a client that calls itself “${client}”`)}</dd>`
  const known = isStored ? ' It replaces the one that you have entered before.' : ''
  const field = `${ticket === undefined ? '' : hidden('t', ticket)}<label for="key">Your key for ${escaped(server)}</label>
<input id="key" name="key" type="password" autocomplete="off" spellcheck="false" required>`
  return {
    title: `Your key for ${server}`,
    body: `${notice}<dl><dt>Server</dt><dd>${escaped(`${server} (${host})`)}</dd>${by}</dl>
<p>Go on only if you have asked for this. Your calls to this server use the key, nobody else's do, and it is not shown again.${known}</p>
<div>${form(`${base}/${encodeURIComponent(server)}`, secret, 'Store', undefined, field)} <a class="button" href="${escaped(base)}">Cancel</a></div>`,
  }
}
