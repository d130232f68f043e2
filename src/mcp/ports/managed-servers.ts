/** Servers that are added and removed while the bridge runs. */

/** What became of a change: an HTTP status, and what is said about it. */
export interface Managed {
  status: number
  body: Readonly<Record<string, unknown>>
}

export interface ManagedServers {
  /** The token of who may change servers; undefined if nobody may. */
  token(): string | undefined
  /** Adds a server, or replaces the one of that name; removes it if there is no entry. `save`: in the file, too. Never rejects. */
  change(name: string, entry: unknown, save: boolean): Promise<Managed>
}
