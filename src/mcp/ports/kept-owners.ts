/** Remembers who has taken a name. */
export interface KeptOwners {
  /**
   * Changes the text of a name, which begins with its owner and a space, and keeps it for so many milliseconds; undefined
   * stands for none. May call `edit` again. Rejects with a Fault if that is impossible now.
   */
  change<T>(
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T>
}
