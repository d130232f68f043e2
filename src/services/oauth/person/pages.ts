/** The pages that a browser shows after the redirect. They contain nothing of the request. */

/** The result that a page reports. */
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

/** The pages. */
export const pages: Readonly<Record<PageName, Page>> = {
  signedIn: page(200, 'Signed in', 'You can close this window and go back to your application.'),
  failed: page(
    400,
    'Not signed in',
    'The sign-in failed. You can close this window. Your application, or the command that you started, shows the reason.',
  ),
  unknown: page(
    400,
    'Not signed in',
    'This sign-in is unknown or has ended. You can close this window. Start again from your application.',
  ),
}

/** Forbids loading, caching, framing and referrers. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}
