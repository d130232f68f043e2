/** Remembers what came of a text, for texts that come again and again: what a client says of itself never changes. */

const MAX_REMEMBERED = 100
const MAX_LENGTH = 1_000

export function remembering<T>(judge: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const judged = judge(text)
    if (known.size >= MAX_REMEMBERED) known.clear()
    if (text.length <= MAX_LENGTH) known.set(text, judged)
    return judged
  }
}
