/** A text field with completions from the server: a combobox, as in the ARIA Authoring Practices. */

import { html } from 'htm/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { shown } from '../../words.js'

/** Resolves to completions of a text. */
export type Complete = (text: string, signal: AbortSignal) => Promise<readonly string[]>

/** Milliseconds without a key before the server is asked. */
const QUIET_FOR = 200
/** Most completions that are drawn. */
const MAX_COMPLETIONS_DRAWN = 100

interface CompletingProps {
  id: string
  text: string
  attributes: Record<string, unknown>
  complete: Complete
  onText(text: string): void
}

export function Completing({ id, text, attributes, complete, onText }: CompletingProps) {
  const [values, setValues] = useState<readonly string[]>([])
  const [at, setAt] = useState(-1)
  const asking = useRef<{ timer: ReturnType<typeof setTimeout>; abort: AbortController } | undefined>(undefined)
  const close = () => {
    clearTimeout(asking.current?.timer)
    asking.current?.abort.abort(new Error('Something else was typed'))
    asking.current = undefined
    setValues([])
    setAt(-1)
  }
  useEffect(() => close, [])
  const ask = (about: string) => {
    close()
    const abort = new AbortController()
    const timer = setTimeout(() => {
      complete(about, abort.signal)
        .then((found) => !abort.signal.aborted && setValues(found.slice(0, MAX_COMPLETIONS_DRAWN)))
        .catch(() => {})
    }, QUIET_FOR)
    asking.current = { timer, abort }
  }
  const take = (value: string) => {
    close()
    onText(value)
  }
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const chosen = values[at]
    if (step !== undefined && values.length > 0)
      setAt((at + step + values.length + (at < 0 && step < 0 ? 1 : 0)) % values.length)
    else if (event.key === 'ArrowDown') ask(text)
    else if (event.key === 'Enter' && chosen !== undefined) take(chosen)
    else if (event.key === 'Escape' && values.length > 0) close()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const typed = (event: Event) => {
    const { value } = event.currentTarget as HTMLInputElement
    onText(value)
    ask(value)
  }
  const isOpen = values.length > 0
  return html`
    <input id=${id} type="text" autocomplete="off" role="combobox" aria-autocomplete="list" aria-expanded=${String(isOpen)} aria-controls=${isOpen ? `${id}-list` : undefined}
      aria-activedescendant=${isOpen && at >= 0 ? `${id}-${at}` : undefined} ...${attributes} value=${text} onInput=${typed} onKeyDown=${pressed} onBlur=${close} />
    ${
      isOpen &&
      html`<ul class="completions" role="listbox" id=${`${id}-list`} aria-label="Completions">
        ${values.map(
          (value, i) =>
            html`<li role="option" id=${`${id}-${i}`} aria-selected=${String(i === at)} onMouseDown=${(
              event: Event,
            ) => {
              event.preventDefault()
              take(value)
            }}>${shown(value, 200)}</li>`,
        )}
      </ul>`
    }
  `
}
