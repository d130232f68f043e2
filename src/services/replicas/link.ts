/** Calls between a process and one that it has started as a worker, over the channel between them (IPC of Node.js). */

/** The channel, which a process has to another one. */
export interface ProcessChannel {
  readonly connected: boolean
  /** `passed`: the connection of a client. */
  send(message: object, passed: unknown, done: (error: Error | null) => void): unknown
  on(event: 'message', take: (message: Message, passed: unknown) => void): unknown
  on(event: 'disconnect', ended: () => void): unknown
}

/** What the other process may call, by name. Arguments and results are JSON. */
export type LinkCalls = Readonly<Record<string, (argument: never, passed: never) => unknown>>

/** A call, or the answer to one. */
interface Message {
  call?: string
  /** The number of a call that is answered, or of an answer. */
  id?: number
  argument?: unknown
  result?: unknown
  error?: object
}

/** One end of the channel. */
export class ProcessLink {
  readonly #channel: ProcessChannel
  readonly #calls: LinkCalls
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  #next = 0

  constructor(channel: ProcessChannel, calls: LinkCalls) {
    this.#channel = channel
    this.#calls = calls
    channel.on('message', (message, passed) => void this.#take(message, passed))
    channel.on('disconnect', () => this.#end())
  }

  /** Calls the other process. Rejects with its error, or if it is gone. */
  call<T>(call: string, argument?: unknown): Promise<T> {
    const id = this.#next++
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject })
      this.#send({ call, id, argument }, undefined, (error) => {
        if (!error) return
        this.#waiting.delete(id)
        reject(error)
      })
    })
  }

  /** Tells the other process something, with the connection of a client if there is one. `lost` is called if that has not left. */
  tell(call: string, argument?: unknown, passed?: unknown, lost: () => void = () => {}): void {
    this.#send({ call, argument }, passed, (error) => error && lost())
  }

  #send(message: Message, passed: unknown, done: (error: Error | null) => void): void {
    if (this.#channel.connected) this.#channel.send(message, passed, done)
    else done(new Error('The other process is gone'))
  }

  async #take({ call, id, argument, result, error }: Message, passed: unknown): Promise<void> {
    if (call === undefined) {
      const waiting = this.#waiting.get(id as number)
      this.#waiting.delete(id as number)
      if (error) waiting?.reject(errorOf(error))
      else waiting?.resolve(result)
      return
    }
    const answer = { id } as Message
    try {
      answer.result = await this.#calls[call]?.(argument as never, passed as never)
    } catch (error) {
      answer.error = fieldsOf(error)
    }
    if (id !== undefined) this.#send(answer, undefined, () => {})
  }

  #end(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error('The other process is gone'))
    this.#waiting.clear()
  }
}

/** An error with its own fields, such as its code. */
function fieldsOf(error: unknown): object {
  return error instanceof Error ? { ...error, name: error.name, message: error.message } : { message: String(error) }
}

function errorOf(fields: object): Error {
  return Object.assign(new Error(), fields)
}
