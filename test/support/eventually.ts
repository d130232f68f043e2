/** Waits for something to become so, rather than sleeping and hoping. */

/** Rejects where it does not become so within half a minute, which is long only for a machine that has nothing else to do. */
export async function until(condition: () => boolean | Promise<boolean>, what = 'it'): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`In half a minute ${what} did not happen`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
