/** The digest of a text, by which secrets are compared in the same time whatever they are. */
import { createHash } from 'node:crypto'

export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
