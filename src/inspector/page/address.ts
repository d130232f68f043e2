/** The address of the page: a token, which is removed from it, or a place: `#/calls/c81?tab=why`, `#/calls?status=tool_error`. */
import { batch, effect } from '@preact/signals'
import {
  CHOICES,
  choices,
  filterText,
  type PagePlace,
  PLACES,
  place,
  type Selection,
  selected,
  TABS,
  tab,
} from './state.js'

const KEPT = 'mcp-bridge-token'

/** The token from the address, or from an earlier visit in this tab. It is removed from the address, to keep it out of links. */
export function takeToken(): string | undefined {
  const fragment = location.hash.slice(1)
  if (isToken(fragment)) {
    sessionStorage.setItem(KEPT, fragment)
    history.replaceState(null, '', addressNow())
  }
  return sessionStorage.getItem(KEPT) ?? undefined
}

/** Fragments of places begin with a slash, tokens do not. */
function isToken(fragment: string): boolean {
  return fragment !== '' && !fragment.startsWith('/')
}

/**
 * Keeps address and page in step, both ways. Calls back with a token that is put into the address; the page then stays
 * where it is.
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

/** The fragment of the current view. */
export function addressNow(): string {
  return addressOf(place.value, place.value === 'calls' ? selected.value : undefined)
}

/** The fragment of a place or a call, with the current filter and tab. */
export function addressOf(where: PagePlace, id?: string): string {
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
  // Only the address of a call has a tab.
  if (selected.value !== undefined) tab.value = TABS.find((one) => one === query.get('tab')) ?? 'messages'
  filterText.value = query.get('filter') ?? ''
  const chosen = CHOICES.flatMap((choice): [Selection, string][] => {
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
