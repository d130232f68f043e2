/** Sets how often V8 collects all garbage while the bridge serves. */
import { setFlagsFromString } from 'node:v8'

/**
 * Lets the heap grow to three times its size between two full collections. By default V8 chooses the growth by how fast a program makes
 * objects. The bridge makes few: most of its bytes are in buffers of sockets and pipes, which count as growth, too. So
 * V8 let the heap grow by a tenth and 16 MB, and marked all of it for every 20 results of 1 MiB, which took more time
 * than passing them on. Twice the size costs a fifth more for a result of 1 MiB than three times does, which takes 25 MiB more memory
 * while such results pass. The maximum of the heap stays, and V8 collects earlier near it.
 *
 * Call it after all code is loaded: cached compiled code is only valid with the flags of its compilation.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=200')
}
