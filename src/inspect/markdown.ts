/** The Markdown of a line of the documents, as far as their tables use it: code and links. */

/** A part of a line. */
export interface Piece {
  text: string
  code: boolean
  /** Where a link leads: an absolute address. */
  href?: string
}

/** Where the documents are. */
const DOCUMENTS = 'https://github.com/mcp-bridge/mcp-bridge/blob/main/docs/'

/** The parts of a line. Links are relative to `document`, the name of the file that the line is from. */
export function piecesOf(line: string, document: string): Piece[] {
  // Between the parts that the split captures is text: it has every fourth place.
  const parts = line.split(/`([^`]+)`|\[([^[\]]+)\]\(([^()\s]+)\)/)
  const pieces: Piece[] = []
  for (let at = 0; at < parts.length; at += 4) {
    const [text = '', code, link, target = ''] = parts.slice(at, at + 4)
    if (text !== '') pieces.push({ text, code: false })
    if (code !== undefined) pieces.push({ text: code, code: true })
    if (link !== undefined) pieces.push({ text: link, code: false, href: addressIn(document, target) })
  }
  return pieces
}

/** The address of a place in the documents. */
export function addressIn(document: string, target: string): string {
  return new URL(target, `${DOCUMENTS}${document}`).href
}

/** A line as plain text. */
export function plainOf(line: string): string {
  return piecesOf(line, '')
    .map(({ text }) => text)
    .join('')
}
