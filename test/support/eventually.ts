/** Waits for something to become so, rather than sleeping and hoping. */

/** Rejects where it does not become so within ten seconds. */
export async function until(condition: () => boolean, what = 'it'): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`In ten seconds ${what} did not happen`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
