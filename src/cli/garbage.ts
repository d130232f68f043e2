/** Sets how often V8 collects garbage while the bridge serves: all of it less often, that of messages that are over more often. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Lets the heap double between two full collections. By default V8 chooses the growth by how fast a program makes
 * objects. The bridge makes few: most of its bytes are in buffers of sockets and pipes, which count as growth, too. So
 * V8 let the heap grow by a tenth and 16 MB, and marked all of it for every 20 results of 1 MiB, which took more time
 * than passing them on. The maximum of the heap stays, and V8 collects earlier near it.
 *
 * Call it after all code is loaded: cached compiled code is only valid with the flags of its compilation.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=100')
}

/**
 * Collects young garbage after this turn of the event loop. The bridge asks for it when so many megabytes of messages have
 * passed. V8 begins a full collection when 64 MB of buffers have been allocated since the last one. Nearly all of them
 * are of messages that are over, and a minor collection frees them in a millisecond. But for buffers, V8 begins one only
 * at 32 MB, and counts them as freed only at the next one (Node.js 20), or at 128 MB (Node.js 24).
 */
export function collectYoung(): void {
  collect ??= collector()
  setImmediate(collect)
}
let collect: (() => void) | undefined

/** V8 gives its function for this only to contexts that are made under a flag. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('globalThis.gc') as ((options: { type: 'minor' }) => void) | undefined
  setFlagsFromString('--no-expose-gc')
  return () => gc?.({ type: 'minor' })
}
