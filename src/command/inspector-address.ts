/** The address for people to open the inspector, with its token. */

/** An address that a browser can open. A wildcard address cannot be opened. */
export function openable(url: string): string {
  return url.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])/, '$1127.0.0.1')
}

/** Placeholder for the configured token, which is not printed. */
const TOKEN = '<token>'

/** The address of the inspector, with the generated token or a placeholder for the configured one. */
export function inspectorAddress(url: string, token: string | undefined): string {
  return `${openable(url)}#${token ?? TOKEN}`
}

/** Whether a browser can open the address: not if it is a socket. */
export function isForBrowsers(address: string): boolean {
  return /^https?:/.test(address)
}

/** The address in its own line, with notes. */
export function inspectorLine(address: string, tail: string): string {
  const what = isForBrowsers(address) ? address : tail
  return `Inspector: ${what}${address.endsWith(`#${TOKEN}`) ? `, where ${TOKEN} is inspect.token of the configuration` : ''}`
}
