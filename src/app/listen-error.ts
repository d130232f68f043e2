/** The error of an address on which the bridge cannot listen: what is wrong, and what to do. */
export class ListenError extends Error {
  override name = 'ListenError'
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}

/** The option whose address cannot be listened on. */
export type ListenOption = 'listen' | 'admin' | 'replicas.address'

/** Throws an error of listening on, with its option. */
export function throwOf(option: ListenOption): (error: unknown) => never {
  return (error) => {
    throw error instanceof Error ? Object.assign(error, { option }) : error
  }
}

/** The option of an error of listening. */
export function optionOf(error: Error): ListenOption {
  return 'option' in error ? (error.option as ListenOption) : 'listen'
}
