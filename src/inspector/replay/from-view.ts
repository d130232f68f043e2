/** Makes a recorded call from a call of the inspector. */
import { isMessage } from '../recorder/events.js'
import type { CallView } from '../views.js'
import { type CallMessages, recordingCallOf, repeatableCallOf } from './from-messages.js'
import type { RecordingCall } from './recording.js'

/** The members of a call that are read. */
export type ShownCall = Pick<CallView, 'client' | 'events' | 'server' | 'status'>

/** The call with its answer, or a sentence: why it cannot be repeated and compared. */
export function recordingOfView(view: ShownCall): RecordingCall | string {
  const { status } = view
  if (status === 'open' || status === 'asks') return 'It has not ended'
  if (status === 'cancelled' || status === 'fault') return 'It was not answered by the server'
  return recordingCallOf(messagesOf(view))
}

/** The repeatable part of a call, and a sentence about what is missing. */
export function repeatableOfView(view: ShownCall): ReturnType<typeof repeatableCallOf> {
  return repeatableCallOf(messagesOf(view))
}

function messagesOf({ client, events, server }: ShownCall): CallMessages {
  const messages = events
    .filter((seen) => isMessage(seen, 'client'))
    .map(({ dir, form, payload }) => ({ dir, form, text: payload?.cut === 0 ? payload.text : '' }))
  return { server, client, messages }
}
