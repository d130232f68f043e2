/** Draws a part of the view Try, or says why it cannot be drawn: what a server sends may exceed what a browser can draw. */
import { html } from 'htm/preact'
import { useErrorBoundary } from 'preact/hooks'
import { shown } from '../../inspect/words.js'

export function Safe({ children }: { children: unknown }) {
  const [error] = useErrorBoundary() as [unknown, () => void]
  if (error === undefined) return children
  return html`<p class="card warning">This cannot be drawn: ${shown(String(error), 500)}</p>`
}
