/** The help: keys, how sides are written, and the filter. */
import { html } from 'htm/preact'
import { useEffect, useRef } from 'preact/hooks'
import { FIELD_NAMES } from '../filter.js'
import { VALUES } from '../filter-hints.js'
import { KEYS } from './keys.js'
import { helpOpen } from './state.js'

/** The fields of the filter, as they are written. */
const WORDS = FIELD_NAMES.map((field) => `${field}:`).join(' ')

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const { value: isOpen } = helpOpen
  const close = () => {
    helpOpen.value = false
  }
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen])
  return html`
    <dialog ref=${dialog} aria-labelledby="keys" onClose=${close}>
      <section>
        <h2 id="keys">Keys</h2>
        <dl>${KEYS.flatMap(([key, about]) => [html`<dt><kbd>${key}</kbd></dt>`, html`<dd>${about}</dd>`])}</dl>
      </section>
      <section>
        <h2>Client → server</h2>
        <p><code>M 07-28 http → L 11-25 stdio</code>: a modern client (M) of revision 2026-07-28 over Streamable HTTP, and a legacy server (L) of revision 2025-11-25 on stdio.</p>
      </section>
      <section>
        <h2>Filter</h2>
        <p><code>${WORDS} ms></code>, or any text. A text is also searched in the kept texts of messages; <code>text:</code> searches only those. <code>id:</code> is the id of the call, or of a client's request. A minus negates a word, a comma separates alternatives: <code>status:error,fault -server:orders ms>500</code></p>
      </section>
      <dl>
        <dt><code>era:</code></dt><dd>modern, legacy, a revision, or a pair such as modern>legacy</dd>
        <dt><code>status:</code></dt><dd>${VALUES.status.join(', ')}, or an error code</dd>
        <dt><code>blame:</code></dt><dd>${VALUES.blame.join(', ')}</dd>
      </dl>
      <button type="button" onClick=${close}>Close</button>
    </dialog>
  `
}
