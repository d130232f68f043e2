/** Where the lists of servers are kept beyond a restart: in files for a bridge that only this machine can reach, in Redis with replicas. */
import { join } from 'node:path'
import { MAX_KEPT_LISTS } from '../base/limits/constants.js'
import type { Log } from '../base/log/events.js'
import { isOnThisMachine, parseListen, type Settings } from '../config/settings.js'
import type { ListStore } from '../mcp/ports/list-store.js'
import type { SharedStore } from '../mcp/ports/replicas.js'
import { ListFiles, NOT_KEPT } from './list-files.js'

const UNREADABLE = 'it cannot be decrypted: it is damaged, or sealed with a key that is not one of stateKeys any more'

interface Places {
  /** The folder for what the bridge knows of a user; undefined if there is none. */
  folder: string | undefined
  log: Pick<Log, 'warn'>
  /** What replicas share; undefined without any. */
  records: Pick<SharedStore, 'lasting' | 'recall' | 'remember'> | undefined
}

/** Undefined if they are kept in memory only. */
export function listStoreOf({ lists, listen }: Settings, { folder, log, records }: Places): ListStore | undefined {
  if (lists === 'memory') return undefined
  if (records?.lasting) return sharedLists(records, log)
  if (folder === undefined || (lists === undefined && !isOnThisMachine(parseListen(listen)))) return undefined
  return new ListFiles({ folder: join(folder, 'lists'), log })
}

function sharedLists(records: Pick<SharedStore, 'recall' | 'remember'>, log: Places['log']): ListStore {
  let hasSaid = false
  const unusable = (key: string, why: string) => {
    if (!hasSaid) log.warn({ event: 'lists_not_kept', path: `lists ${key} in Redis`, why }, NOT_KEPT)
    hasSaid = true
  }
  return {
    read: (key) => records.recall('lists', key, () => unusable(key, UNREADABLE)).catch(() => undefined),
    write: async (key, text) => {
      await records.remember('lists', key, text, MAX_KEPT_LISTS)
    },
    unusable,
  }
}
