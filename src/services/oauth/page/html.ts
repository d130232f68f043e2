/**
 * The page where people sign in to servers, as HTML without scripts, and its headers. All texts are escaped; nothing of a
 * request is in it.
 */
import { sha256 } from '../../../base/crypto/digest.js'
import { visibleJson } from '../../../base/texts/printable.js'
import type { PageChoice, PageQuestion } from '../../../middle/policy/approval/page-questions.js'
import { argumentText, runFor } from '../../../middle/policy/approval/question.js'

/** A server, and the person's account there. */
export interface ServerRow {
  name: string
  /** The host of the server. */
  host: string
  state: 'signed in' | 'expired' | 'not signed in' | 'unknown'
  /** The host of the authorization server; undefined if it is not known yet. */
  issuer: string | undefined
  /** The person enters a key, and does not sign in. */
  hasKey: boolean
}

/** What the forms and links of a page need. */
export interface PageContext {
  /** The path of the page, as browsers know it. */
  base: string
  /** The person in the browser; undefined if unknown. */
  who: string | undefined
  /** The secret of the forms in this browser. */
  secret: string | undefined
}

/** The body of a page, and what is different about it. */
export interface Content {
  title: string
  body: string
  /** An address to go on to at once. */
  onTo?: string | undefined
}

/** Most characters of the name of a tool. */
const MAX_SHOWN_TOOL = 128

const STYLE = `:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif;--line:#8888;--dim:#555;--act:#0b57d0;--on:#fff;background:#fff;color:#1f1f1f}
@media(prefers-color-scheme:dark){:root{--dim:#bbb;--act:#a8c7fa;--on:#062e6f;background:#131314;color:#e3e3e3}}
body{max-width:44rem;margin:0 auto;padding:1.5rem 1rem}
header{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:baseline;justify-content:space-between}
h1{font-size:1.5rem;margin:0}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;padding:.6rem .5rem;border-bottom:1px solid var(--line);vertical-align:middle;overflow-wrap:anywhere}
td:last-child{text-align:right;white-space:nowrap}
form{display:inline}
small,.dim{color:var(--dim)}
a{color:var(--act)}
button,.button{font:inherit;padding:.35rem .9rem;border:1px solid var(--act);border-radius:.4rem;background:none;color:var(--act);text-decoration:none;cursor:pointer;display:inline-block}
.main{background:var(--act);color:var(--on)}
:focus-visible{outline:3px solid var(--act);outline-offset:2px}
input{font:inherit;padding:.35rem .5rem;width:100%;max-width:26rem;box-sizing:border-box;margin:.25rem 0 .75rem}
label,dt{font-weight:600}label{display:block}
dl{margin:1rem 0}dd{margin:0 0 .75rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);padding:.5rem .8rem}
.notice{border:1px solid var(--line);border-left:.3rem solid var(--act);padding:.5rem .8rem;margin:1rem 0}`

const STYLE_HASH = sha256(STYLE).toString('base64')

/** Forbids scripts, framing, caching, and forms to other origins. A form needs its origin, so there is a referrer on this host. */
export const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
}

/** A text for HTML, also within an attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
}

/** The whole page. */
export function document({ title, body, onTo }: Content, { base, who, secret }: PageContext): string {
  const refresh = onTo === undefined ? '' : `<meta http-equiv="refresh" content="0;url=${escaped(onTo)}">\n`
  const person =
    who === undefined || onTo !== undefined
      ? ''
      : `<p>You are <strong>${escaped(who)}</strong> ${form(`${base}/browser/out`, secret, 'Not you?')}</p>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
${refresh}<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${escaped(title)}</h1>${person}</header>
<main>
${body}
</main>
</body>
</html>
`
}

type States = Readonly<Record<ServerRow['state'], string>>
const STATES: States = {
  'signed in': 'Signed in',
  expired: 'Expired: sign in again',
  'not signed in': 'Not signed in',
  unknown: 'Unknown for now',
}
const KEY_STATES: States = { ...STATES, 'signed in': 'Key stored', 'not signed in': 'No key' }

/** The list of servers. `done`: the server that the person has just signed in to. */
export function list(rows: readonly ServerRow[], done: string | undefined, { base, secret }: PageContext): Content {
  const signedIn = rows.find(({ name, state }) => name === done && state === 'signed in')
  const notice = signedIn
    ? `<p class="notice" role="status">${signedIn.hasKey ? 'There is a key for' : 'You are signed in to'} <strong>${escaped(signedIn.name)}</strong>. You can close this window and go back to your application.</p>`
    : ''
  const row = ({ name, host, state, issuer, hasKey }: ServerRow) => {
    const at = encodeURIComponent(name)
    const link = (label: string, full: string) =>
      `<a class="button" href="${escaped(`${base}/${at}`)}" aria-label="${escaped(full)}">${label}</a>`
    const out = (label: string, full: string) => form(`${base}/out/${at}`, secret, label, full)
    const isThere = state === 'signed in'
    const ofKey = isThere
      ? `${link('Replace', `Replace the key for ${name}`)} ${out('Delete', `Delete the key for ${name}`)}`
      : link('Enter key', `Enter the key for ${name}`)
    const ofAccount = isThere ? out('Sign out', `Sign out of ${name}`) : link('Sign in', `Sign in to ${name}`)
    const actions = hasKey ? ofKey : ofAccount
    const states = hasKey ? KEY_STATES : STATES
    const where = issuer === undefined ? '' : ` <small>at ${escaped(issuer)}</small>`
    return `<tr><th scope="row">${escaped(name)}<br><small>${escaped(host)}</small></th><td>${states[state]}${where}</td><td>${actions}</td></tr>`
  }
  return {
    title: 'Your accounts',
    body: `${notice}
<p>Here you sign in to servers with your own accounts. Only your own calls use them.</p>
<table>
<thead><tr><th scope="col">Server</th><th scope="col">Your account</th><td></td></tr></thead>
<tbody>
${rows.map(row).join('\n')}
</tbody>
</table>`,
  }
}

/** What a person agrees to. */
export interface Agreement {
  server: string
  host: string
  issuer: string
  scopes: readonly string[]
  client: string | undefined
  ticket: string | undefined
}

/** Asks whether to go on to the authorization server. */
export function agreement(asked: Agreement, { base, secret }: PageContext): Content {
  const { server, host, issuer, scopes, client, ticket } = asked
  const rows = [
    ['Server', `${server} (${host})`],
    ['You sign in at', issuer],
    ...(scopes.length > 0 ? [['It may then', scopes.join(', ')]] : []),
    ...(client === undefined ? [] : [['Asked for by', `a client that calls itself “${client}”`]]),
  ] as [string, string][]
  const more = ticket === undefined ? '' : hidden('t', ticket)
  return {
    title: `Sign in to ${server}`,
    body: `<dl>${rows.map(([name, text]) => `<dt>${name}</dt><dd>${escaped(text)}</dd>`).join('')}</dl>
<p>Go on only if you have asked for this. Your calls use the account with which you sign in.</p>
<p>${form(`${base}/${encodeURIComponent(server)}`, secret, 'Continue', undefined, more)} <a class="button" href="${escaped(base)}">Cancel</a></p>`,
  }
}

/** Asks whether a call may go to its server. */
export function approval(name: string, asked: PageQuestion, { base, secret }: PageContext): Content {
  const { server, tool, client, window } = asked
  const rows = [
    ['Server', server],
    ['Tool', visibleJson(tool.slice(0, MAX_SHOWN_TOOL)) + (tool.length > MAX_SHOWN_TOOL ? '…' : '')],
    ...(client === undefined ? [] : [['Asked for by', `a client that calls itself “${client}”`]]),
  ] as [string, string][]
  const button = (choice: PageChoice, label: string) =>
    form(`${base}/approve/${encodeURIComponent(name)}`, secret, label, undefined, hidden('choice', choice))
  const more = window === undefined ? '' : ` ${button('window', runFor(window))}`
  const any = window === undefined ? '' : '<p class="dim">For that time, the tool runs with any arguments.</p>'
  return {
    title: 'Run this tool?',
    body: `<dl>${rows.map(([term, text]) => `<dt>${term}</dt><dd>${escaped(text)}</dd>`).join('')}</dl>
<pre>${escaped(argumentText(asked))}</pre>
<p>Go on only if you have asked for this.</p>
<p>${button('run', 'Run')}${more} ${button('refused', 'Do not run')}</p>${any}`,
  }
}

export function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escaped(value)}">`
}

/** On the way to an authorization server. A redirect would not do: it counts as the target of the form. */
export function leaving(server: string, address: string): Content {
  return {
    title: `Sign in to ${server}`,
    body: `<p>If nothing happens: <a class="button main" href="${escaped(address)}" rel="noreferrer">Continue</a></p>`,
    onTo: address,
  }
}

/** The page that asks the person to identify. */
export function welcome(
  ways: { company: string | undefined; tokens: boolean },
  secret: string,
  wrong: boolean,
  { base }: PageContext,
): Content {
  const company =
    ways.company === undefined
      ? ''
      : `<p><a class="button main" href="${escaped(ways.company)}">Sign in with your company</a></p>`
  const notice = wrong ? '<p class="notice" role="alert">This token is unknown.</p>' : ''
  const token = ways.tokens
    ? `<form method="post" action="${escaped(`${base}/browser/token`)}">${hidden('secret', secret)}
<label for="token">Your token for this bridge</label>
<input id="token" name="token" type="password" autocomplete="off" required>
<button>Sign in</button></form>`
    : ''
  return { title: 'Who are you?', body: `${notice}${company}${token}` }
}

/** A short text, with a link back. */
export function message(title: string, text: string, link: { text: string; href: string } | undefined): Content {
  const more = link ? `<p><a class="button" href="${escaped(link.href)}">${escaped(link.text)}</a></p>` : ''
  return { title, body: `<p>${escaped(text)}</p>${more}` }
}

/** A form with one button. */
export function form(action: string, secret: string | undefined, label: string, full?: string, more = ''): string {
  const name = full === undefined ? '' : ` aria-label="${escaped(full)}"`
  const main = ['Continue', 'Run', 'Store'].includes(label) ? ' class="main"' : ''
  return `<form method="post" action="${escaped(action)}">${hidden('secret', secret ?? '')}${more}<button${main}${name}>${escaped(label)}</button></form>`
}
