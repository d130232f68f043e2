/** What replicas have in common: values, counts and messages. They are in Redis, or in the process that has started them as workers. */

/** A change of a value. An empty text stands for no value. */
export interface Swap {
  from: string
  to: string
  milliseconds: number
}

/** A count, and the milliseconds until it begins anew. */
export interface Count {
  current: number
  ttl: number
}

/** Values by key, each for a time. All methods reject where they are unreachable. */
export interface CommonValues {
  /** Whether values outlive all replicas. */
  readonly lasting: boolean
  get(key: string): Promise<string | null>
  set(key: string, text: string, milliseconds: number): Promise<unknown>
  /** Sets a value if there is none. Resolves to whether it did. */
  add(key: string, text: string, milliseconds: number): Promise<boolean>
  delete(key: string): Promise<unknown>
  /** Changes a value if it is the expected one. Resolves to whether it was. */
  swap(key: string, change: Swap): Promise<boolean>
  /** Adds one to a count that expires so many milliseconds after its first. */
  increment(key: string, milliseconds: number): Promise<Count>
}

/** A call of a value by its name, as it passes between processes. */
export interface ValueCall {
  name: Exclude<keyof CommonValues, 'lasting'>
  of: unknown[]
}

export interface Common extends CommonValues {
  /** Whether they can be reached; undefined if they are lost only together with this replica. */
  readonly working: boolean | undefined
  /** Whether values may go before their time; undefined if that is unknown. */
  readonly mayEvict: boolean | undefined
  /** Called when messages may have been missed. */
  onReturn: () => void
  connect(): Promise<void>
  close(): void
  /** Hears a channel. To be called before `connect`. */
  listen(channel: string, listener: (message: Buffer) => void): void
  publish(channel: string, message: Buffer): Promise<unknown>
}
