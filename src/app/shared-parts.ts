/** Makes what all mounts of a bridge share, and changes it when settings change. */
import { getHeapStatistics } from 'node:v8'
import { keyOf, type SealKey } from '../base/crypto/seal.js'
import { Bound } from '../base/limits/bound.js'
import { Memory } from '../base/limits/memory.js'
import { EventStore } from '../clients/http/event-store.js'
import { Refusals } from '../clients/http/refusals.js'
import { CountedWindows } from '../clients/plugins/counted-windows.js'
import { parseListen, type Settings, shareOf } from '../config/settings.js'
import { expirations } from '../middle/policy/approval/expirations.js'
import { PageQuestions } from '../middle/policy/approval/page-questions.js'
import { Watched } from '../middle/policy/approval/watched.js'
import { keepResults } from '../middle/policy/cache/results.js'
import { KeptResults } from '../middle/policy/cut/kept-results.js'
import type { AuditLines } from '../services/telemetry/audit-lines.js'
import { type BridgeContext, observerOf } from './context.js'
import { Descriptors } from './descriptors.js'
import { keptOwners } from './kept-owners.js'
import { keptParts } from './kept-parts.js'
import type { Shared } from './shared.js'

export function sharedFor(settings: Settings, context: BridgeContext): Shared {
  const { log, replicas } = context
  const { calls, subscriptions, memory: bytes } = boundsIn(settings)
  const records = replicas?.records
  const memory = new Memory(bytes)
  const observe = observerOf(context)
  const keys = settings.stateKeys.map(keyOf)
  const windows = new CountedWindows(records && ((name, ms) => records.count('tool', name, ms)))
  const audit = auditFor(settings, context)
  const questionExpired = expirations(audit, observe)
  const watched = new Watched()
  const pushedOut = ({ server }: { server: string }) => observe?.({ kind: 'cut', server, what: 'pushed_out' })
  return {
    keys,
    isShared: parseListen(settings.listen).kind !== 'stdio',
    replicas,
    audit,
    desk: undefined,
    countCall: (name, milliseconds) => windows.count(name, milliseconds),
    subscribers: keptOwners('subscriber', records),
    approvals: keptOwners('approval', records),
    pageQuestions: new PageQuestions(keptOwners('question', records), questionExpired, watched),
    watched,
    questionExpired,
    calls: new Bound(calls),
    subscriptions: new Bound(subscriptions),
    memory,
    results: keepResults(memory),
    kept: new KeptResults(keys, keptParts(records, memory, pushedOut)),
    events: new EventStore(memory),
    refusals: new Refusals(log, observe),
    descriptors: new Descriptors(log),
    loggedCalls: settings.log.calls,
  }
}

/** Applies the bounds and keys of other settings. */
export function changeShared(shared: Shared, settings: Settings, keys: readonly SealKey[]): void {
  const { calls, subscriptions, memory } = boundsIn(settings)
  shared.keys.splice(0, shared.keys.length, ...keys)
  Object.assign(shared.calls, calls)
  Object.assign(shared.subscriptions, subscriptions)
  shared.memory.resize(memory)
}

function boundsIn(settings: Settings) {
  const { calls, subscriptions, memory } = settings.limits
  const share = shareOf(settings)
  return {
    calls: { max: calls, share },
    subscriptions: { max: subscriptions, share },
    // Bytes: as configured, otherwise a quarter of the heap limit.
    memory: { max: memory ?? Math.floor(getHeapStatistics().heap_size_limit / 4), share },
  }
}

/** The audit log; undefined if none is configured. */
function auditFor({ audit }: Settings, { log, services, env, version }: BridgeContext): AuditLines | undefined {
  if (!audit) return undefined
  if (!services?.startAudit) throw new Error('The code of the audit log is not loaded')
  const { file } = audit
  const changed = (failure: unknown) => {
    if (failure === undefined) log.info({ event: 'audit_resumed' }, 'the audit log can be written again')
    else
      log.error(
        { event: 'audit_failed', ...(file !== undefined && { file }), err: failure },
        'the audit log cannot be written',
      )
  }
  return services.startAudit(audit, { env, version, changed })
}
