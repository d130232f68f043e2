/** Texts of others in messages. Requests of each call load this, so it imports nothing more. */
import { printable } from '../../base/texts/printable.js'

/** Text of others for a message, bounded and in quotes. */
export function quoted(text: string): string {
  return `"${printable(text, 200)}"`
}
