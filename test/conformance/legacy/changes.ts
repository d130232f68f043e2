/** What changes while the server runs: a tool and a prompt that come and go, for all sessions at once. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'

export class Changes {
  #tool = false
  #prompt = false
  readonly #servers = new Set<Server>()

  get tool(): boolean {
    return this.#tool
  }

  get prompt(): boolean {
    return this.#prompt
  }

  /** Has the server notify its client, until `unwatch`. */
  watch(server: Server): void {
    this.#servers.add(server)
  }

  unwatch(server: Server): void {
    this.#servers.delete(server)
  }

  async toggleTool(): Promise<void> {
    this.#tool = !this.#tool
    await Promise.all([...this.#servers].map((server) => server.sendToolListChanged()))
  }

  async togglePrompt(): Promise<void> {
    this.#prompt = !this.#prompt
    await Promise.all([...this.#servers].map((server) => server.sendPromptListChanged()))
  }
}
