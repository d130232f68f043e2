/** The corpus on a bridge's standard input: each text is a line, and after each a good request has to be answered. */
import { setImmediate as turn } from 'node:timers/promises'
import type { BuiltBridge } from '../../support/built-bridge.js'
import { initialize } from '../../support/legacy-client.js'
import { envelope } from '../../support/modern.js'
import type { Era, Text } from '../corpus/input.js'
import type { Random } from '../corpus/random.js'
import { SPLITS, split } from '../corpus/splits.js'
import type { Verdict } from './verdict.js'

/** Milliseconds that a good request may take. */
const PATIENCE = 20_000

export class HostilePipe {
  readonly #bridge: BuiltBridge
  readonly #era: Era
  /** Ids that were answered. */
  readonly #answered = new Set<unknown>()
  #rest = ''
  #lastId = 0
  /** Lines that came and are no JSON-RPC. */
  readonly wrong: string[] = []

  constructor(bridge: BuiltBridge, era: Era) {
    this.#bridge = bridge
    this.#era = era
    bridge.child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
  }

  async open(): Promise<void> {
    if (this.#era === 'modern') return
    await this.#write([Buffer.from(`${initialize('2025-11-25')}\n`)])
    await this.#has('hello')
    await this.#write([Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')])
  }

  async run(all: Iterable<Text>, verdict: Verdict, random: Random): Promise<void> {
    const name = `stdio, ${this.#era}`
    for (const { kind, name: input, body } of all) {
      verdict.inputs++
      for (const how of SPLITS) {
        const where = `${name}, ${kind}: ${input}, ${how}`
        verdict.runs++
        await this.#write(split(Buffer.concat([body, Buffer.from('\n')]), how, random))
        if (await this.answers()) continue
        if (this.#bridge.ended === undefined) verdict.fail('stuck', where)
        else verdict.fail('crashes', `${where}: ${this.#bridge.ended}`)
        return
      }
    }
    for (const line of this.wrong) verdict.fail('notJsonRpc', `${name}: ${line.slice(0, 200)}`)
  }

  /** Whether a good request is answered. */
  async answers(): Promise<boolean> {
    const id = `good ${++this.#lastId}`
    const good = this.#era === 'legacy' ? { method: 'ping' } : { method: 'tools/list', params: { _meta: envelope() } }
    await this.#write([Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, ...good })}\n`)])
    return this.#has(id)
  }

  async #write(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      if (!this.#bridge.child.stdin.write(piece)) await turn()
      if (pieces.length > 1) await turn()
    }
  }

  async #has(id: string): Promise<boolean> {
    const deadline = Date.now() + PATIENCE
    while (!this.#answered.has(id)) {
      if (Date.now() > deadline || this.#bridge.ended !== undefined) return false
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    this.#answered.delete(id)
    return true
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      try {
        for (const message of [JSON.parse(line) as unknown].flat() as Record<string, unknown>[]) {
          if (message['jsonrpc'] !== '2.0') this.wrong.push(line)
          if (!('method' in message)) this.#answered.add(message['id'])
        }
      } catch {
        this.wrong.push(line)
      }
    }
  }
}
