/** The side of the panel of a call, and the size of the list beside it. The browser remembers both. */
import { computed, effect, signal } from '@preact/signals'

/** Where the panel is. */
export type PanelSide = 'below' | 'right'

/** The size of the list in percent: its bounds, and its defaults. */
export const LIST = { least: 10, most: 85, first: { below: 32, right: 40 } } as const

const KEPT = 'mcp-bridge-panel'
/** On narrower screens, the panel is always below. */
const WIDE = matchMedia('(min-width: 1100px)')

const wide = signal(WIDE.matches)
WIDE.addEventListener('change', ({ matches }) => {
  wide.value = matches
})

const remembered = read()
const chosenSide = signal<PanelSide>(remembered.side)
const shares = signal<Readonly<Record<PanelSide, number>>>({ below: remembered.below, right: remembered.right })

/** Whether there is a choice. */
export const mayBeRight = computed(() => wide.value)

export const panelSide = computed<PanelSide>(() => (wide.value ? chosenSide.value : 'below'))

/** The current size of the list in percent. */
export const listShare = computed(() => shares.value[panelSide.value])

export function movePanel(): void {
  chosenSide.value = panelSide.value === 'below' ? 'right' : 'below'
}

/** Resizes the list. */
export function resizeList(percent: number): void {
  const share = Math.round(Math.min(LIST.most, Math.max(LIST.least, percent)))
  if (Number.isFinite(share)) shares.value = { ...shares.peek(), [panelSide.peek()]: share }
}

effect(() => {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ side: chosenSide.value, ...shares.value }))
  } catch {
    // Without storage, the choice lasts for this visit.
  }
})

/** The layout of an earlier visit. Invalid values are ignored. */
function read(): { side: PanelSide } & Record<PanelSide, number> {
  let found: Partial<Record<string, unknown>> = {}
  try {
    const parsed: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '{}')
    if (typeof parsed === 'object' && parsed !== null) found = parsed as typeof found
  } catch {
    // No storage, or not JSON.
  }
  const share = (side: PanelSide) => {
    const value = found[side]
    return typeof value === 'number' && value >= LIST.least && value <= LIST.most ? value : LIST.first[side]
  }
  return { side: found['side'] === 'right' ? 'right' : 'below', below: share('below'), right: share('right') }
}
