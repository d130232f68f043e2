/** How people open the inspector: its address with its token. */

/** An address that can be opened. One that stands for all addresses of this machine cannot. */
export function openable(url: string): string {
  return url.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])/, '$1127.0.0.1')
}

/** Stands for the token of the configuration, which is not printed. */
const TOKEN = '<token>'

/** The address of the inspector with the token of this start, or with a place for the configured one. */
export function inspectorAddress(url: string, token: string | undefined): string {
  return `${openable(url)}#${token ?? TOKEN}`
}

/** Whether a browser can open the address: not if it is a socket. */
export function isForBrowsers(address: string): boolean {
  return /^https?:/.test(address)
}

/** The address in a line of its own, with what there is to know. */
export function inspectorLine(address: string, tail: string): string {
  const what = isForBrowsers(address) ? address : tail
  return `Inspector: ${what}${address.endsWith(`#${TOKEN}`) ? `, where ${TOKEN} is inspect.token of the configuration` : ''}`
}
