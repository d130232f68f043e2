/** Events as viewers see them: with texts, in which secrets are hidden, and with images. */

import type { OtherSource } from './other-source.js'
import { picturesIn } from './pictures.js'
import type { KeptText, RecordedEvent } from './recorder/events.js'
import { redactor } from './redact.js'
import type { Ring } from './ring.js'

export type ShownEvents = ReturnType<typeof shownEvents>

/** `hide` are globs of JSON Pointers whose values are hidden. In texts of another source, secrets are hidden already. */
export function shownEvents(ring: Ring, source: OtherSource | undefined, hide: readonly string[]) {
  const redact = redactor(hide)
  const textOf = (number: number) => (source ? source.textOf(number) : ring.text(number))
  const withText = <T extends RecordedEvent>(event: T): T => {
    const payload = textOf(event.seq)
    if (source || !payload) return withPayload(event, payload)
    const isHidden = (path: readonly string[]) => ring.secretArguments.has(event.server, path)
    return withPayload(event, { cut: payload.cut, ...redact(payload.text, isHidden) })
  }
  return {
    withText,
    /** Adds small images to an event with a complete text. */
    withPictures(event: RecordedEvent): RecordedEvent {
      if (event.kind !== 'message' || !event.payload || event.payload.cut > 0) return event
      const pictures = picturesIn(textOf(event.seq)?.text ?? '', event.payload.text)
      return pictures.length === 0 ? event : { ...event, payload: { ...event.payload, pictures } }
    },
    /** Whether a viewer finds these characters, in lower case, in the text of an event. */
    hasText: (event: RecordedEvent, part: string): boolean =>
      event.kind === 'message' &&
      // Hiding secrets takes longer than searching.
      textOf(event.seq)?.text.toLowerCase().includes(part) === true &&
      (withText(event) as typeof event).payload?.text.toLowerCase().includes(part) === true,
  }
}

export function withPayload<T extends RecordedEvent>(event: T, payload: KeptText | undefined): T {
  return payload ? { ...event, payload } : event
}
