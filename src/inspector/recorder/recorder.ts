/** The recorder of a bridge: turns what the bridge reports into events. */
import type { Observe } from '../../mcp/ports/events.js'
import type { ChannelRecorder, ClientRecorder, Recorder, ServerRecorder } from '../../mcp/ports/recorder.js'
import { Calls } from './calls.js'
import { RecordedChannel } from './channel.js'
import { RecordedClients } from './clients.js'
import type { RecordEvent } from './events.js'
import { observing } from './observed.js'

export class EventRecorder implements Recorder {
  readonly observe: Observe
  readonly #record: RecordEvent
  readonly #calls: Calls

  /** Records at most `callsPerSecond` calls per second. */
  constructor(record: RecordEvent, callsPerSecond = Number.POSITIVE_INFINITY) {
    this.observe = observing(record)
    this.#record = record
    this.#calls = new Calls(record, callsPerSecond)
  }

  note(kind: 'config' | 'trust', text: string, server?: string): void {
    this.#record(server === undefined ? { kind, text } : { kind, server, text })
  }

  stderr(server: string, line: string): void {
    this.#record({ kind: 'child', server, what: 'stderr', line })
  }

  clientsOf(server: string): ClientRecorder {
    return new RecordedClients(this.#calls, server)
  }

  serverOf(server: string): ServerRecorder {
    return { channel: (isHttp): ChannelRecorder => new RecordedChannel(this.#record, server, isHttp) }
  }
}
