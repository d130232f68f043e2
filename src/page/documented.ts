/** Texts of the documents, with their code and links. */
import { html } from 'htm/preact'
import { adviceOn, type Failure } from '../inspect/advice.js'
import { piecesOf, plainOf } from '../inspect/markdown.js'
import { ruleAddress, ruleWords, shown } from '../inspect/words.js'

/** A line of a document. */
export function Line({ text, document }: { text: string; document: string }) {
  return html`${piecesOf(text, document).map(({ text, code, href }) => {
    if (code) return html`<code>${text}</code>`
    return href === undefined ? text : html`<a href=${href} target="_blank" rel="noreferrer">${text}</a>`
  })}`
}

/** The code of a rule with a link to its row in the documentation, and the row in words as its tip. */
export function Rule({ rule }: { rule: string }) {
  const words = ruleWords(rule)
  return html`<a href=${ruleAddress(rule)} title=${words && plainOf(words)} target="_blank" rel="noreferrer">${shown(rule)}</a>`
}

/** The row of a rule in words. */
export function RuleRow({ rule }: { rule: string }) {
  return html`<${Line} text=${ruleWords(rule) ?? ''} document="translation.md" />`
}

/** What a failure means and what to do about it, if that is known. */
export function Advised({ failure }: { failure: Failure }) {
  const advice = adviceOn(failure)
  if (!advice) return null
  const line = (text: string) => html`<${Line} text=${text} document="troubleshooting.md" />`
  return html`<p class="advice">${line(advice.meaning)} <b>What to do:</b> ${line(advice.next)}</p>`
}
