/** Sets how often V8 collects garbage while the bridge serves. */
import { setFlagsFromString } from 'node:v8'

/** V8 collects young objects when buffers of four times so many MB belong to them. */
const YOUNG = '--scavenger-max-new-space-capacity-mb=8'
/** Versions of V8 that have this flag, and would wait for 128 MB. Earlier ones wait for 32 MB without it. */
const WAITING = /^13\./

/**
 * Lets V8 collect young objects sooner, and all objects later. The bridge makes few objects: most of its bytes are in buffers of
 * sockets and pipes. V8 counts them as growth of the heap, and marks all of it when there are 64 MB of new ones, or when the heap
 * has grown by a tenth and 16 MB. That took more time than passing results of 1 MiB on: p99 was 50 ms in place of 22.
 *
 * The buffers of a call that has ended are free without marking, if young objects are collected before that. So this happens for
 * each 32 MB, and the heap grows to three times its size between two full collections. The maximum of the heap stays, and V8
 * collects all earlier near it.
 *
 * Call it after all code is loaded: cached compiled code is only valid with the flags of its compilation.
 */
export function collectRarely(): void {
  setFlagsFromString('--heap-growing-percent=200')
  if (WAITING.test(process.versions.v8)) setFlagsFromString(YOUNG)
}
