/** A person with a browser: follows where an authorization request leads, cookies and all, and comes back. */

export interface Visit {
  /** The authorization request that the browser was sent with. */
  address: URL
  /** Where it was sent back to; undefined where it was not. */
  callback: URL | undefined
  /** What it was shown in the end. */
  status: number
  page: string
}

const MAX_STEPS = 20

export interface Person {
  /** How often they reload a page that does not answer. */
  patience?: number
  /** Whether they follow the way back to the client. */
  back?: boolean
  /** What they type into fields of these names. They send each form that they are shown. */
  types?: Readonly<Record<string, string>>
}

/** Goes there, and wherever that leads, to the end. */
export async function visit(address: string, { patience = 0, back = true, types }: Person = {}): Promise<Visit> {
  const cookies = new Map<string, string>()
  let form: URLSearchParams | undefined
  let url = new URL(address)
  let callback: URL | undefined
  for (let step = 0; step < MAX_STEPS; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response: Response = await reached(url, cookie, patience, form)
    form = undefined
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) {
      const page = await response.text()
      const shown = types && formIn(page, types)
      if (!shown) return { address: new URL(address), callback, status: response.status, page }
      url = new URL(shown.action, url)
      form = shown.fields
      continue
    }
    url = new URL(location, url)
    // Clients of 2025-03-26 may send no state.
    if (!url.searchParams.has('state') && !url.searchParams.has('code')) continue
    callback = url
    if (!back) return { address: new URL(address), callback, status: response.status, page: '' }
  }
  throw new Error(`${address} leads nowhere`)
}

/** The first form of a page, filled in. */
function formIn(page: string, types: Readonly<Record<string, string>>) {
  const [, action, content = ''] = /<form[^>]* action="([^"]*)"[^>]*>(.*?)<\/form>/s.exec(page) ?? []
  if (action === undefined) return undefined
  const fields = new URLSearchParams()
  for (const [input] of content.matchAll(/<input[^>]*>/g)) {
    const name = / name="([^"]*)"/.exec(input)?.[1]
    if (name !== undefined) fields.set(name, types[name] ?? / value="([^"]*)"/.exec(input)?.[1] ?? '')
  }
  return { action, fields }
}

async function reached(url: URL, cookie: string, patience: number, form?: URLSearchParams): Promise<Response> {
  for (let tries = 0; ; tries++) {
    try {
      const sent = form && { method: 'POST', body: form }
      return await fetch(url, { redirect: 'manual', headers: { cookie }, ...sent })
    } catch (error) {
      if (tries >= patience) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
