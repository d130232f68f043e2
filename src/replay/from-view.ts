/** Makes a call of a recording of a call that the inspector shows. */
import type { MessageRow } from '../inspect/rows.js'
import type { CallView } from '../inspect/views.js'
import { recordingCallOf } from './from-messages.js'
import type { RecordingCall } from './recording.js'

/** What is read of a call. */
export type ShownCall = Pick<CallView, 'client' | 'events' | 'server' | 'status'>

/** The call; a sentence that says why not, if it cannot be repeated. */
export function recordingOfView({ client, events, server, status }: ShownCall): RecordingCall | string {
  if (status === 'open' || status === 'asks') return 'It has not ended'
  if (status === 'cancelled' || status === 'fault') return 'It was not answered by the server'
  const messages = events.filter(
    (seen): seen is MessageRow => seen.kind === 'message' && seen.hop === 'client' && seen.form !== 'notification',
  )
  const texts = messages.map(({ dir, form, payload }) => ({ dir, form, text: payload?.cut === 0 ? payload.text : '' }))
  return recordingCallOf({ server, client, messages: texts })
}
