/** All bridges of this user on this machine as one: follows those that start, and keeps the calls of those that end. */

import { bridgesIn, type RunningBridge } from '../../app/running-bridges.js'
import { BoundedMap } from '../../base/limits/bounded.js'
import type { HiddenItems, InspectedBridge, InspectedTarget, TargetRequest } from '../../mcp/ports/inspected-bridge.js'
import { callNumber, type KeptText } from '../recorder/events.js'
import type { ServerNow } from '../server-views.js'
import type { CallView } from '../views.js'
import { FollowedBridge } from './followed.js'
import { Merged } from './merged.js'

export interface HubOptions {
  /** The folder with the sockets of running bridges. */
  folder: string
  /** The number of this user; below zero on systems without owners and modes. */
  uid: number
  /** Called once for each socket that is refused. */
  onRefused(path: string, why: string): void
  /** Called when a bridge has appeared or ended, with the number of bridges. */
  onChange(text: string, bridges: number): void
}

/** Milliseconds between two searches of the folder. */
const LOOK_EVERY = 1_000
/** Most bridges that are followed at once, and most bytes of a forwarded request. */
const MAX_BRIDGES = 100
const MAX_HANDED_ON = 4 * 1024 * 1024
/** Most process ids that are remembered. */
const MAX_KNOWN_PIDS = 100_000

export class Hub implements InspectedBridge {
  readonly merged = new Merged()
  readonly bodyBytes = MAX_HANDED_ON
  readonly #options: HubOptions
  readonly #bridges = new Map<string, FollowedBridge>()
  /** How many bridges have had a process id: the system reuses them. */
  readonly #seen = new BoundedMap<string, number>(MAX_KNOWN_PIDS)
  readonly #refused = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** The texts of all calls are kept until then, in milliseconds of `performance.now()`. */
  #allUntil = 0

  constructor(options: HubOptions) {
    this.#options = options
  }

  /** Number of bridges that run. */
  get size(): number {
    return this.#bridges.size
  }

  /** Looks for bridges now, and then every second. */
  async start(): Promise<void> {
    await this.#look()
    const again = () => {
      this.#timer = setTimeout(() => {
        this.#look().then(again, again)
      }, LOOK_EVERY)
    }
    again()
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const bridge of this.#bridges.values()) bridge.stop()
  }

  /** Asks all bridges for the state of their servers. */
  async refresh(): Promise<void> {
    await Promise.all([...this.#bridges.values()].map((bridge) => bridge.refresh()))
  }

  servers(): ServerNow[] {
    return [...this.#bridges.values()].flatMap(({ servers }) => servers)
  }

  targets(): InspectedTarget[] {
    return [...this.#bridges.values()].flatMap(({ targets }) => targets.map(({ name, kind }) => ({ name, kind })))
  }

  async call(name: string, request: TargetRequest): Promise<Response | undefined> {
    const target = await this.#targetOf(name)
    return target?.bridge.call(target.own, request)
  }

  async hidden(name: string): Promise<HiddenItems | undefined> {
    const target = await this.#targetOf(name)
    return target?.bridge.hidden(target.own)
  }

  /** The texts that running bridges have of a call, by the numbers of their events. */
  async textsOf({ id, parts }: Pick<CallView, 'id' | 'parts'>): Promise<ReadonlyMap<number, KeptText>> {
    const texts = new Map<number, KeptText>()
    for (const one of [id, ...parts]) {
      const from = this.merged.sourceOf(callNumber(one))
      const bridge = [...this.#bridges.values()].find(({ source }) => source === from?.source)
      const found = from && (await bridge?.textsOf(from.id).catch(() => undefined))
      for (const [number, text] of found ?? []) texts.set(number, text)
    }
    return texts
  }

  /** Which texts are kept, as far as this page has changed it. */
  get kept(): { payloads: 'off' | 'all'; until?: number } {
    return performance.now() < this.#allUntil
      ? { payloads: 'all', until: Math.round(performance.timeOrigin + this.#allUntil) }
      : { payloads: 'off' }
  }

  /** Some bridges may have texts. */
  readonly hasTexts = true

  /** Makes all bridges keep the texts of all calls for this many milliseconds; 0: as configured. */
  keepAll(milliseconds: number): void {
    this.#allUntil = milliseconds > 0 ? performance.now() + milliseconds : 0
    for (const bridge of this.#bridges.values()) bridge.keepTexts(milliseconds > 0).catch(() => {})
  }

  /** The bridge that has a target, and its name there. */
  async #targetOf(name: string): Promise<{ bridge: FollowedBridge; own: string } | undefined> {
    if (!this.targets().some((one) => one.name === name)) await this.refresh()
    for (const bridge of this.#bridges.values()) {
      const target = bridge.targets.find((one) => one.name === name)
      if (target) return { bridge, own: target.own }
    }
    return undefined
  }

  async #look(): Promise<void> {
    const { folder, uid, onRefused } = this.#options
    const { bridges, refused } = await bridgesIn(folder, uid, (pid) => !this.#bridges.has(pid))
    for (const { path, why } of refused) {
      if (this.#refused.has(path)) continue
      this.#refused.add(path)
      onRefused(path, why)
    }
    for (const bridge of bridges) if (this.#bridges.size < MAX_BRIDGES) this.#follow(bridge)
  }

  #follow(running: RunningBridge): void {
    const { pid } = running
    const times = (this.#seen.get(pid) ?? 0) + 1
    this.#seen.set(pid, times)
    const bridge = new FollowedBridge(running, this.merged, times === 1 ? pid : `${pid}-${times}`)
    this.#bridges.set(pid, bridge)
    bridge.source.note('the bridge runs')
    if (this.kept.payloads === 'all') bridge.keepTexts(true).catch(() => {})
    this.#options.onChange(`bridge ${pid} runs`, this.#bridges.size)
    const over = () => {
      this.#bridges.delete(pid)
      bridge.end()
      this.#options.onChange(`bridge ${pid} has ended`, this.#bridges.size)
    }
    bridge.follow().then(over, over)
  }
}
