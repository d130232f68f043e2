/** Repeats a call: copies it in a chosen form, or opens it in the view Try. */
import { signal } from '@preact/signals'
import { html } from 'htm/preact'
import { COPY_FORM_NAMES, type CopyFormName } from '../../config/copy-forms.js'
import { COPY_FORMS } from '../replay/copies.js'
import { repeatableOfView } from '../replay/from-view.js'
import type { CallView } from '../views.js'
import { copyText } from './keys.js'
import { source } from './state.js'
import { tryAgain } from './try/repeated.js'

/** The form that was chosen last. */
const chosenForm = signal<CopyFormName>('curl')

/** The buttons of a call that can be repeated. */
export function RepeatButtons({ call }: { call: CallView }) {
  const forms = COPY_FORM_NAMES.flatMap((name) => {
    const { [name]: form } = COPY_FORMS
    const made = form.of(call)
    return made ? [{ name, ...form, ...made }] : []
  })
  const form = forms.find(({ name }) => name === chosenForm.value) ?? forms[0]
  const { call: repeatable } = repeatableOfView(call)
  const choose = ({ currentTarget }: Event) => {
    chosenForm.value = (currentTarget as HTMLSelectElement).value as CopyFormName
  }
  const copy = () => {
    if (!form) return
    const { command, variables, what } = form
    copyText(command, variables.length === 0 ? what : `${what}: it needs ${variables.join(', ')}`)
  }
  return html`
    ${
      form &&
      html`<span class="copying">
        <select aria-label="Copy as" value=${form.name} onChange=${choose}>
          ${forms.map(({ name, label }) => html`<option value=${name} selected=${name === form.name}>${label}</option>`)}
        </select>
        <button type="button" onClick=${copy}>Copy call</button>
      </span>`
    }
    ${repeatable && source.value.kind === 'live' && html`<button type="button" onClick=${() => tryAgain(repeatable)}>Try again</button>`}
  `
}
