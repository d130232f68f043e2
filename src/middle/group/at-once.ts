/** Does something for each of several servers, for some of them at the same time. */

/** Most servers that are asked at the same time for one call. */
const AT_ONCE = 32

/** The results in the order of the items. Items are started in order; none is started any more after `isEnough`. */
export async function someAtOnce<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  isEnough: (result: R) => boolean = () => false,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  let isOver = false
  const worker = async () => {
    while (next < items.length && !isOver) {
      const at = next++
      const result = await act(items[at] as T)
      results[at] = result
      isOver ||= isEnough(result)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  return results
}
