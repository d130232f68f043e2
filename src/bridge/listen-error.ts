/** The bridge cannot listen: what is wrong, and what to do. */
export class ListenError extends Error {
  override name = 'ListenError'
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}
