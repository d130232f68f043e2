/** Keyboard shortcuts and the clipboard. */
import { addressNow } from './address.js'
import { togglePin } from './pins.js'
import { helpOpen, move, moveTab, place, say, selected, source, toggleHelp, togglePause } from './state.js'
import { hideTip } from './tip.js'

/** What keys do, as the help says it; and the action of each key that is one of the whole page. */
const TABLE: readonly (readonly [shown: string, about: string, actions?: Readonly<Record<string, () => void>>])[] = [
  ['j, ↓', 'next call', { j: () => move(1), ArrowDown: () => move(1) }],
  ['k, ↑', 'previous call', { k: () => move(-1), ArrowUp: () => move(-1) }],
  ['Enter', 'go to the panel of the call', { Enter: () => document.getElementById('panel')?.focus() }],
  ['Esc', 'close the panel, or leave the filter'],
  ['[ ]', 'previous and next tab of the panel', { '[': () => moveTab(-1), ']': () => moveTab(1) }],
  ['↓ ↑ on a mark', 'next and previous change in the texts'],
  ['/', 'filter', { '/': () => document.getElementById('filter')?.focus() }],
  ['p', 'pause or resume the list', { p: togglePause }],
  ['*', 'pin or unpin the call', { '*': togglePin }],
  ['y', 'copy a link to this view', { y: () => copyLink() }],
  ['?', 'this help', { '?': toggleHelp }],
]
export const KEYS = TABLE.map(([shown, about]) => [shown, about] as const)
const ACTIONS: Readonly<Record<string, () => void>> = Object.assign({}, ...TABLE.map(([, , actions]) => actions))

/** Listens to keys until the page is closed. */
export function followKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { target } = event
    if (event.key === 'Escape') return leave(target)
    // While the help is open, other keys do nothing.
    if (helpOpen.value && event.key !== '?') return
    if (isField(target)) return
    // These keys already mean something to the focused element.
    const own = target instanceof HTMLElement && target.closest('a, button, summary, #panel')
    if (own && (event.key === 'Enter' || event.key.startsWith('Arrow'))) return
    const action = ACTIONS[event.key]
    if (!action || (place.value !== 'calls' && event.key !== '?' && event.key !== 'y')) return
    event.preventDefault()
    action()
  })
}

/** Whether keys write or choose there. */
function isField(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.matches('input, select, textarea')
}

function leave(target: EventTarget | null): void {
  if (hideTip()) return
  if (helpOpen.value) helpOpen.value = false
  else if (isField(target) && !(target instanceof HTMLSelectElement)) target.blur()
  else selected.value = undefined
}

export function copyLink(): void {
  if (source.value.kind === 'file') return say('A file has no link')
  copyText(new URL(addressNow(), location.href).href, 'the link')
}

export function copyText(text: string, what: string): void {
  navigator.clipboard.writeText(text).then(
    () => say(`Copied ${what}`),
    () => say('The browser refused to copy'),
  )
}
