/** What commands use of the inspector: to serve it, to print calls, to record them, and to make them again. */

export type { InspectorOptions } from './answers.js'
export { readFilter } from './filter.js'
export { Hub } from './hub/hub.js'
export { MAX_PAST_FILE, type PastSession, pastSessionIn } from './hub/past-session.js'
export { Inspector } from './inspector.js'
export type { RecordEvent } from './recorder/events.js'
export { EventRecorder } from './recorder/recorder.js'
export { redactor } from './redact.js'
export type { Difference } from './replay/diff.js'
export { USUALLY_IGNORED } from './replay/from-messages.js'
export { GatheredCalls } from './replay/gathered.js'
export {
  MAX_RECORDING,
  type Recording,
  type RecordingCall,
  readRecording,
  recordingText,
  writeCall,
} from './replay/recording.js'
export { type Replayed, type ReplayOptions, replayed } from './replay/run.js'
export { inspector } from './routes.js'
export { type PrintedForm, printEvents, type TailOutput } from './tail/tail.js'
