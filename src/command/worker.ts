/** A worker: a bridge that another process has started, beside others. That process accepts connections, and has what workers have in common. */
import type { Socket } from 'node:net'
import { ListenError } from '../app/listen-error.js'
import type { Entrance, WorkerFact, Workers } from '../app/workers.js'
import type { Log } from '../base/log/events.js'
import type { Settings } from '../config/settings.js'
import { type ProcessChannel, ProcessLink } from '../services/replicas/link.js'
import { CommonOfPrimary } from '../services/replicas/of-primary.js'
import type { EndSignal } from './program.js'
import { partOf } from './worker-bounds.js'
import type { Begin, Door, DoorOpening } from './worker-messages.js'

/** Who takes the connections at each address. */
type Takers = Map<Door, (socket: Socket) => void>

export class Worker implements Workers {
  readonly number: number
  /** The bridge has not served before. */
  readonly isFirst: boolean
  /** Called when the bridge is to end, or to read its configuration again. */
  onSignal: (signal: EndSignal) => void = () => {}
  onReload: () => void = () => {}
  readonly #begin: Begin
  readonly #link: ProcessLink
  readonly #common: CommonOfPrimary
  readonly #doors: Takers
  #telling: Partial<Record<WorkerFact, () => unknown>> = {}
  /** All workers end together. */
  #allEnd: () => void = () => {}

  static async begin(primary: ProcessChannel): Promise<Worker> {
    const doors: Takers = new Map()
    let worker: Worker | undefined
    const link: ProcessLink = new ProcessLink(primary, {
      hear: (said: { channel: string; text: string }) => common.hear(said),
      connection: ({ door }: { door: Door }, socket: Socket | undefined) => {
        if (!socket) return
        const take = doors.get(door)
        // As a server of HTTP makes its sockets.
        socket.allowHalfOpen = true
        if (take) take(socket)
        else socket.destroy()
      },
      tell: ({ what }: { what: WorkerFact }) => worker?.tell(what),
      signal: ({ signal }: { signal: EndSignal }) => worker?.end(signal),
      reload: () => worker?.onReload(),
    })
    const common = new CommonOfPrimary(link)
    worker = new Worker(await link.call<Begin>('begin'), { link, common, doors })
    return worker
  }

  private constructor(
    begin: Begin,
    { link, common, doors }: { link: ProcessLink; common: CommonOfPrimary; doors: Takers },
  ) {
    this.#begin = begin
    this.number = begin.number
    this.isFirst = begin.isFirst
    this.#link = link
    this.#common = common
    this.#doors = doors
  }

  /** What this worker may have of the settings. */
  part(settings: Settings): Settings {
    const { count, key } = this.#begin
    return partOf(settings, count, key)
  }

  /** The other workers as replicas: those that share a Redis, if there is one. */
  async replicas(settings: Settings, log: Log) {
    const { replicasOf, replicasOfWorkers } = await import('../app/replicas.js')
    const { socket } = this.#begin
    const replicas = replicasOf(settings, log) ?? replicasOfWorkers(settings, { common: this.#common, socket }, log)
    if (!settings.redis) this.#allEnd = () => replicas.allLeave()
    return replicas
  }

  /** To be called when this worker serves, at these origins. */
  serves(origins: readonly string[]): void {
    this.#link.tell('serves', { origins })
  }

  entranceOf(door: Door): Entrance {
    return {
      open: async (at, mode, take) => {
        this.#doors.set(door, take)
        const opening: DoorOpening = { door, at, mode }
        return this.#link.call<string>('open', opening).catch((error: Error) => {
          throw error.name === 'ListenError' && 'next' in error
            ? new ListenError(error.message, String(error.next))
            : error
        })
      },
      close: () => {
        if (this.#doors.delete(door)) this.#link.tell('close', { door })
      },
    }
  }

  tells(telling: Readonly<Record<WorkerFact, () => unknown>>): void {
    this.#telling = telling
  }

  /** What this worker tells of itself. */
  tell(what: WorkerFact): unknown {
    return this.#telling[what]?.()
  }

  gather<T>(what: WorkerFact): Promise<readonly T[]> {
    return this.#link.call('gather', { what })
  }

  /** The whole bridge ends. */
  end(signal: EndSignal): void {
    this.#allEnd()
    this.onSignal(signal)
  }
}
