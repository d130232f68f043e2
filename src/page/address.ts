/** The address of the page: the token, which is taken out of it, and then the place: `#/calls/c81?tab=why`, `#/calls?status=tool_error`. */
import { batch, effect } from '@preact/signals'
import { CHOICES, type Choice, choices, filterText, PLACES, type Place, place, selected, TABS, tab } from './state.js'

const KEPT = 'mcp-bridge-token'

/** The token of the address, or of an earlier visit in this tab. It leaves the address, so that links have none. */
export function takeToken(): string | undefined {
  const fragment = location.hash.slice(1)
  if (isToken(fragment)) {
    sessionStorage.setItem(KEPT, fragment)
    history.replaceState(null, '', addressNow())
  }
  return sessionStorage.getItem(KEPT) ?? undefined
}

/** Places begin with a slash, tokens do not. */
function isToken(fragment: string): boolean {
  return fragment !== '' && !fragment.startsWith('/')
}

/**
 * Goes where the address says, now and when it changes, and makes the address say where the page is. Calls back with a token
 * that the address gets; the page stays where it is.
 */
export function followAddress(onToken: (token: string | undefined) => void): void {
  const read = () => {
    const fragment = location.hash.slice(1)
    if (isToken(fragment)) onToken(takeToken())
    else batch(() => go(fragment))
  }
  addEventListener('hashchange', read)
  read()
  effect(() => {
    const address = addressNow()
    if (location.hash !== address) history.replaceState(null, '', address)
  })
}

/** The fragment for what is shown now. */
export function addressNow(): string {
  return addressOf(place.value, place.value === 'calls' ? selected.value : undefined)
}

/** The fragment of a place, or of a call, with the filter and the part of a call that are chosen now. */
export function addressOf(where: Place, id?: string): string {
  const query = new URLSearchParams()
  for (const choice of CHOICES) {
    const value = choices.value[choice]
    if (value !== undefined) query.set(choice, value)
  }
  if (filterText.value !== '') query.set('filter', filterText.value)
  if (id !== undefined && tab.value !== 'messages') query.set('tab', tab.value)
  const path = id === undefined ? where : `${where}/${encodeURIComponent(id)}`
  const text = query.toString()
  return `#/${path}${text === '' ? '' : `?${text}`}`
}

function go(fragment: string): void {
  const [path = '', queryText = ''] = fragment.split('?', 2)
  const query = new URLSearchParams(queryText)
  const [, where = '', id] = path.split('/')
  place.value = PLACES.find((one) => one === where) ?? 'calls'
  selected.value = id === undefined || id === '' ? undefined : decoded(id)
  // Only the address of a call says which part of it is shown.
  if (selected.value !== undefined) tab.value = TABS.find((one) => one === query.get('tab')) ?? 'messages'
  filterText.value = query.get('filter') ?? ''
  const chosen = CHOICES.flatMap((choice): [Choice, string][] => {
    const value = query.get(choice)
    return value === null ? [] : [[choice, value]]
  })
  choices.value = Object.fromEntries(chosen)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
