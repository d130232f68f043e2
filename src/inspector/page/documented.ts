/** Texts from the docs, with their code and links. */
import { html } from 'htm/preact'
import { adviceOn, type ShownFailure } from '../advice.js'
import { piecesOf, plainOf } from '../markdown.js'
import { ruleAddress, ruleWords, shown } from '../words.js'

/** A line from the docs. */
function Line({ text, document }: { text: string; document: string }) {
  return html`${piecesOf(text, document).map(({ text, code, href }) => {
    if (code) return html`<code>${text}</code>`
    return href === undefined ? text : html`<a href=${href} target="_blank" rel="noreferrer">${text}</a>`
  })}`
}

/** The code of a rule, linked to its row in the docs, with the text of the row as tooltip. */
export function Rule({ rule }: { rule: string }) {
  const words = ruleWords(rule)
  return html`<a href=${ruleAddress(rule)} title=${words && plainOf(words)} target="_blank" rel="noreferrer">${shown(rule)}</a>`
}

/** The text of a rule's row. */
export function RuleRow({ rule }: { rule: string }) {
  return html`<${Line} text=${ruleWords(rule) ?? ''} document="development/translation.md" />`
}

/** The meaning and remedy of a failure, if known. */
export function Advised({ failure }: { failure: ShownFailure }) {
  const advice = adviceOn(failure)
  if (!advice) return null
  const line = (text: string) => html`<${Line} text=${text} document="troubleshooting.md" />`
  return html`<p class="advice">${line(advice.what)} <b>What to do:</b> ${line(advice.next)}</p>`
}
