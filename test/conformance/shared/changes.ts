/** What changes while a server runs: a tool and a prompt that come and go, for everybody at once. */

/** Tells somebody that a list has changed. */
export interface Watcher {
  tools(): void | Promise<void>
  prompts(): void | Promise<void>
}

export class Changes {
  #tool = false
  #prompt = false
  readonly #watchers = new Set<Watcher>()

  get tool(): boolean {
    return this.#tool
  }

  get prompt(): boolean {
    return this.#prompt
  }

  /** Has the watcher told of every change, until `unwatch`. */
  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  async toggleTool(): Promise<void> {
    this.#tool = !this.#tool
    await Promise.all([...this.#watchers].map((watcher) => watcher.tools()))
  }

  async togglePrompt(): Promise<void> {
    this.#prompt = !this.#prompt
    await Promise.all([...this.#watchers].map((watcher) => watcher.prompts()))
  }
}
