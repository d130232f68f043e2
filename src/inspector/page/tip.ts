/** The tooltip of the element under the pointer, or with the focus. There is one at a time. */
import { signal } from '@preact/signals'
import { html } from 'htm/preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface Shown {
  text: string
  /** The explained element. */
  of: Element
}

const tip = signal<Shown | undefined>(undefined)
/** Milliseconds for the pointer to reach the tooltip. */
const LEAVING = 200
/** Pixels between the tooltip and its element, and to the edge of the page. */
const GAP = 4

let leaving: ReturnType<typeof setTimeout> | undefined

export function explain(of: Element, text: string): void {
  clearTimeout(leaving)
  if (tip.peek()?.of !== of) tip.value = { of, text }
}

/** The pointer or the focus has left. */
export function stopExplaining(): void {
  clearTimeout(leaving)
  leaving = setTimeout(hideTip, LEAVING)
}

/** Returns whether there was anything to hide. */
export function hideTip(): boolean {
  clearTimeout(leaving)
  const wasShown = tip.peek() !== undefined
  tip.value = undefined
  return wasShown
}

function stay(): void {
  clearTimeout(leaving)
}

/** Hidden from screen readers: these get the text from the element. */
export function Tip() {
  const element = useRef<HTMLParagraphElement>(null)
  const { value: now } = tip
  useLayoutEffect(() => {
    const { current: box } = element
    if (!box || !now) return
    if (!now.of.isConnected) {
      hideTip()
      return
    }
    const of = now.of.getBoundingClientRect()
    const { width, height } = box.getBoundingClientRect()
    const isBelow = of.bottom + GAP + height <= innerHeight
    box.style.top = `${isBelow ? of.bottom + GAP : Math.max(GAP, of.top - GAP - height)}px`
    box.style.left = `${Math.max(GAP, Math.min(of.left, innerWidth - width - GAP))}px`
  })
  return (
    now &&
    html`<p class="tip" aria-hidden="true" ref=${element} onPointerEnter=${stay} onPointerLeave=${stopExplaining}>${now.text}</p>`
  )
}
