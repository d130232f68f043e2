/** Divides long work, so that the same process can serve calls in between. */

/** Milliseconds of work in one turn of the event loop. */
const TURN = 2
/** Characters of a piece. */
const CHUNK = 64 * 1024

/** The same items, in several turns of the event loop. */
export async function* inTurns<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  let began = performance.now()
  for (const item of items) {
    yield item
    if (performance.now() - began < TURN) continue
    await new Promise((resolve) => setImmediate(resolve))
    began = performance.now()
  }
}

/** The same text in fewer pieces. */
export async function* inChunks(pieces: AsyncIterable<string>): AsyncGenerator<string, void> {
  let chunk = ''
  for await (const piece of pieces) {
    chunk += piece
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}
