/** The Markdown in tables of the docs: code and links. */
import { DOCUMENTS } from '../base/texts/documents.js'

/** A part of a line. */
export interface MarkdownPiece {
  text: string
  code: boolean
  /** The target of a link: an absolute address. */
  href?: string
}

/** The parts of a line. Links are relative to `document`, the name of its file. */
export function piecesOf(line: string, document: string): MarkdownPiece[] {
  // Every fourth part of the split is text; the others are captures.
  const parts = line.split(/`([^`]+)`|\[([^[\]]+)\]\(([^()\s]+)\)/)
  const pieces: MarkdownPiece[] = []
  for (let at = 0; at < parts.length; at += 4) {
    const [text = '', code, link, target = ''] = parts.slice(at, at + 4)
    if (text !== '') pieces.push({ text, code: false })
    if (code !== undefined) pieces.push({ text: code, code: true })
    if (link !== undefined) pieces.push({ text: link, code: false, href: addressIn(document, target) })
  }
  return pieces
}

/** The address of a section in the docs. */
export function addressIn(document: string, target: string): string {
  return new URL(target, `${DOCUMENTS}${document}`).href
}

/** A line as plain text. */
export function plainOf(line: string): string {
  return piecesOf(line, '')
    .map(({ text }) => text)
    .join('')
}
