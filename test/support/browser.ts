/** A browser without scripts: cookies by origin, redirects, refreshes and forms. */

/** What a browser shows. */
export interface Shown {
  url: URL
  status: number
  page: string
  headers: Headers
}

const MAX_STEPS = 20

export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>()
  /** Addresses that it was at. */
  readonly history: string[] = []

  /** Goes there, and wherever that leads. */
  async go(address: string, form?: URLSearchParams, headers: Record<string, string> = {}): Promise<Shown> {
    let url = new URL(address)
    let body = form
    for (let step = 0; step < MAX_STEPS; step++) {
      const shown = await this.step(url.href, body, headers)
      const refresh = /<meta http-equiv="refresh" content="0;url=([^"]*)">/.exec(shown.page)?.[1]
      const location = shown.headers.get('location') ?? (refresh && unescaped(refresh))
      if (!location) return shown
      url = new URL(location, url)
      body = undefined
    }
    throw new Error(`${address} leads nowhere`)
  }

  /** One request. */
  async step(address: string, form?: URLSearchParams, headers: Record<string, string> = {}): Promise<Shown> {
    const url = new URL(address)
    this.history.push(url.href)
    const jar = this.#cookies.get(url.origin) ?? new Map<string, string>()
    this.#cookies.set(url.origin, jar)
    const response = await fetch(url, {
      redirect: 'manual',
      method: form ? 'POST' : 'GET',
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form && { origin: url.origin, 'sec-fetch-site': 'same-origin' }),
        ...headers,
      },
      ...(form && { body: form }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return { url, status: response.status, page: await response.text(), headers: response.headers }
  }

  /** Presses a button of a page, by its label or its accessible name. */
  press(shown: Shown, label: string, more: Record<string, string> = {}): Promise<Shown> {
    return this.go(...this.form(shown, label, more))
  }

  /** What a button of a page would send, and where. */
  form({ page, url }: Shown, label: string, more: Record<string, string> = {}): [string, URLSearchParams] {
    const forms = [...page.matchAll(/<form method="post" action="([^"]*)">(.*?)<\/form>/gs)]
    const found = forms.find(([, , inner = '']) => inner.includes(`>${label}</button>`) || inner.includes(`"${label}"`))
    if (!found) throw new Error(`no button ${label} in ${page}`)
    const [, action = '', inner = ''] = found
    const fields = [...inner.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
    const values = fields.map(([, name = '', value = '']) => [name, unescaped(value)])
    return [new URL(unescaped(action), url).href, new URLSearchParams({ ...Object.fromEntries(values), ...more })]
  }

  /** Its cookies at an origin, as another browser could have stolen them. */
  cookiesAt(origin: string): Map<string, string> {
    return this.#cookies.get(origin) ?? new Map()
  }
}

function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code)))
}
