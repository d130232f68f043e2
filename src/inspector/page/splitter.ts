/** The line between the list and the panel of a call, which the mouse and the keyboard can move. */
import { html } from 'htm/preact'
import { LIST, listShare, panelSide, resizeList } from './layout.js'

/** Percent that a key moves it. */
const BY = 2

export function Splitter() {
  const isBelow = panelSide.value === 'below'
  return html`
    <div class="splitter" role="separator" tabindex="0" aria-label="Size of the list" aria-controls="list"
      aria-orientation=${isBelow ? 'horizontal' : 'vertical'} aria-valuemin=${LIST.least} aria-valuemax=${LIST.most} aria-valuenow=${listShare.value}
      title="Drag, or press arrow keys; double-click to reset"
      onPointerDown=${grab} onPointerMove=${drag} onKeyDown=${press} onDblClick=${restore}></div>
  `
}

function grab(event: PointerEvent): void {
  if (event.button !== 0) return
  ;(event.currentTarget as HTMLElement).setPointerCapture(event.pointerId)
  // Prevents the selection of text.
  event.preventDefault()
}

function drag(event: PointerEvent): void {
  const splitter = event.currentTarget as HTMLElement
  if (!splitter.hasPointerCapture(event.pointerId)) return
  const { left, top, width, height } = (splitter.parentElement as HTMLElement).getBoundingClientRect()
  const share = panelSide.peek() === 'below' ? (event.clientY - top) / height : (event.clientX - left) / width
  resizeList(share * 100)
}

const KEYS: Readonly<Record<string, (now: number) => number>> = {
  ArrowUp: (now) => now - BY,
  ArrowLeft: (now) => now - BY,
  ArrowDown: (now) => now + BY,
  ArrowRight: (now) => now + BY,
  PageUp: (now) => now - 5 * BY,
  PageDown: (now) => now + 5 * BY,
  Home: () => LIST.least,
  End: () => LIST.most,
  Enter: () => LIST.first[panelSide.peek()],
}

function press(event: KeyboardEvent): void {
  const to = KEYS[event.key]
  if (!to) return
  // These keys also move in the list.
  event.stopPropagation()
  event.preventDefault()
  resizeList(to(listShare.peek()))
}

function restore(): void {
  resizeList(LIST.first[panelSide.peek()])
}
