/** A mistake on the command line. */
export class UsageError extends Error {
  override name = 'UsageError'
  /** The command with the relevant help; undefined for the whole program. */
  readonly command: string | undefined

  constructor(message: string, command?: string) {
    super(message)
    this.command = command
  }
}
