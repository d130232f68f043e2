/** An error boundary for parts of the view Try: data of a server may exceed what a browser can render. */
import { html } from 'htm/preact'
import { useErrorBoundary } from 'preact/hooks'
import { shown } from '../../words.js'

export function Safe({ children }: { children: unknown }) {
  const [error] = useErrorBoundary() as [unknown, () => void]
  if (error === undefined) return children
  return html`<p class="card warning">Cannot display this: ${shown(String(error), 500)}</p>`
}
