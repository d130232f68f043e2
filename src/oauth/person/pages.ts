/** What a browser shows when it comes back from the authorization server. Nothing of the request is in it. */

export type PageName = 'signedIn' | 'failed' | 'unknown'

interface Page {
  status: number
  html: string
}

const page = (status: number, title: string, text: string): Page => ({
  status,
  html: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<h1>${title}</h1>
<p>${text}</p>
</html>
`,
})

export const pages: Readonly<Record<PageName, Page>> = {
  signedIn: page(200, 'Signed in', 'You can close this window and go back to your application.'),
  failed: page(
    400,
    'Not signed in',
    'The sign-in did not succeed. Close this window: your application, or the command that you started, says why.',
  ),
  unknown: page(
    400,
    'Not signed in',
    'This sign-in is not known here, or it is over. Close this window, and start again from your application.',
  ),
}

/** Nothing is loaded, kept, framed or told to whoever is visited next. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}
