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

/** Goes there, and wherever that leads, to the end. `patience` is how often it reloads a page that does not answer. */
export async function visit(address: string, { patience = 0, back = true } = {}): Promise<Visit> {
  const cookies = new Map<string, string>()
  let url = new URL(address)
  let callback: URL | undefined
  for (let step = 0; step < MAX_STEPS; step++) {
    const response = await reached(url, [...cookies].map(([name, value]) => `${name}=${value}`).join('; '), patience)
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null)
      return { address: new URL(address), callback, status: response.status, page: await response.text() }
    url = new URL(location, url)
    // Clients of 2025-03-26 may send no state.
    if (!url.searchParams.has('state') && !url.searchParams.has('code')) continue
    callback = url
    if (!back) return { address: new URL(address), callback, status: response.status, page: '' }
  }
  throw new Error(`${address} leads nowhere`)
}

async function reached(url: URL, cookie: string, patience: number): Promise<Response> {
  for (let tries = 0; ; tries++) {
    try {
      return await fetch(url, { redirect: 'manual', headers: { cookie } })
    } catch (error) {
      if (tries >= patience) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
