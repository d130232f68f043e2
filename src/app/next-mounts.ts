/** What a configuration makes of the servers and groups of a bridge: which are new, which go on, and which are gone. */
import { groupsOf, lazyServers, type Settings } from '../config/settings.js'
import type { BridgeContext } from './context.js'
import { GroupMount } from './group-mount.js'
import { Mount } from './mount.js'
import { commonSettings, losesCallers, mountSettings, planOf } from './mount-settings.js'
import type { Mounts } from './places.js'
import type { Served } from './served.js'
import type { Shared } from './shared.js'

/** The servers and groups that are served now, and the settings that they were made of. */
export interface MountsNow extends Mounts {
  settings: Settings
}

export class NextMounts implements Mounts {
  readonly servers: ReadonlyMap<string, Mount>
  readonly groups: ReadonlyMap<string, GroupMount>
  readonly #settings: Settings
  readonly #now: MountsNow | undefined
  readonly #lazy: ReadonlySet<string>

  /** Makes what is new. What is there now stays as it is. */
  constructor(settings: Settings, shared: Shared, context: BridgeContext, now?: MountsNow) {
    this.#settings = settings
    this.#now = now
    this.#lazy = lazyServers(settings)
    const anew = now === undefined || losesCallers(now.settings, settings)
    this.servers = new Map(
      Object.keys(settings.mcpServers).map((name) => {
        const own = mountSettings(name, settings)
        const plan = planOf(name, own, context.lead?.(name)?.plan)
        const old = anew ? undefined : now.servers.get(name)
        const side = old?.plan.server === plan.server ? old.side : undefined
        const stays = side && old?.plan.policies === plan.policies
        return [name, stays ? old : new Mount(name, own, shared, context, side)]
      }),
    )
    const common = commonSettings(settings)
    this.groups = new Map(
      [...groupsOf(settings)].map(([name, entry]) => {
        const old = now?.groups.get(name)
        const group = old ?? new GroupMount(entry, common, shared, context)
        if (!old) group.set(entry, this.servers, this.#lazy)
        return [name, group]
      }),
    )
  }

  /** The servers that are new, or that replace others. */
  get fresh(): readonly Mount[] {
    return [...this.servers.values()].filter((mount) => this.#now?.servers.get(mount.name) !== mount)
  }

  /** What is served now, and is not here: groups first. */
  get gone(): readonly (GroupMount | Mount)[] {
    const { groups = new Map<string, GroupMount>(), servers = new Map<string, Mount>() } = this.#now ?? {}
    return [
      ...[...groups.values()].filter((group) => this.groups.get(group.name) !== group),
      ...[...servers.values()].filter((mount) => this.servers.get(mount.name) !== mount),
    ]
  }

  /** Names of servers by what happens to them. */
  get changes(): { added: string[]; changed: string[]; removed: string[] } {
    const known = this.#now?.servers ?? new Map()
    const fresh = this.fresh.map(({ name }) => name)
    return {
      added: fresh.filter((name) => !known.has(name)),
      changed: fresh.filter((name) => known.has(name)),
      removed: [...known.keys()].filter((name) => !this.servers.has(name)),
    }
  }

  /** Applies the settings to what goes on. */
  adapt(): void {
    this.#adaptTo(this.#settings)
  }

  /** Undoes that, and ends what is new: the settings cannot be used. */
  async undo(): Promise<void> {
    if (this.#now) this.#adaptTo(this.#now.settings)
    const groups = [...this.groups.values()].filter((group) => this.#now?.groups.get(group.name) !== group)
    for (const one of [...groups, ...this.fresh]) await one.close(true)
  }

  /** From now on, this is what is served. */
  take(): void {
    for (const mount of this.fresh) mount.takeOver(mountSettings(mount.name, this.#settings))
    for (const [name, entry] of groupsOf(this.#settings)) this.groups.get(name)?.set(entry, this.servers, this.#lazy)
  }

  /** What a client on stdio is served: the only group, or else the only server. */
  get onlyOne(): Served | undefined {
    const [served] = [...this.groups.values(), ...this.servers.values()]
    return served
  }

  #adaptTo(settings: Settings): void {
    const names = new Set(this.fresh.map(({ name }) => name))
    for (const [name, mount] of this.servers) if (!names.has(name)) mount.adapt(mountSettings(name, settings))
    const common = commonSettings(settings)
    for (const [name, group] of this.groups) if (this.#now?.groups.get(name) === group) group.adapt(common)
  }
}
