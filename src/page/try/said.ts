/** What a server has said, where it says a text at all: control characters become visible. */
import { shown } from '../../inspect/words.js'

/** Empty if it is no text. `most`: characters. */
export function said(value: unknown, most?: number): string {
  return typeof value === 'string' ? shown(value, most) : ''
}
