/** Where a bridge keeps what servers listed last, so that it survives a restart: files of its user, or Redis. */
export interface ListStore {
  /** The text under a key; undefined if there is none that may be used. Never rejects. */
  read(key: string): Promise<string | undefined>
  /** Keeps a text, if there is room. Never rejects. */
  write(key: string, text: string): Promise<void>
  /** To be called when a text is not as it was written: that is said once. */
  unusable(key: string, why: string): void
}
