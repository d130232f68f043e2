/**
 * How tests wait. A test waits for a condition, never for a time, and gives up late: the machine may have ten other things to do.
 * Nothing here asserts that something is quick.
 */

/** Milliseconds after which a test gives up. The limit of a file, `timeout` in .taprc, is longer. */
export const PATIENCE = 120_000

/** Between two looks, and how long `repeatUntil` waits before it acts again, in milliseconds. */
const LOOK_EVERY = 10
const REPEAT_AFTER = 200

/**
 * Resolves when the condition holds. Rejects, with the name of what did not happen, when the patience is over. A look that starts
 * a program is worth fewer of them.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'it',
  every = LOOK_EVERY,
): Promise<void> {
  const deadline = Date.now() + PATIENCE
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`In ${PATIENCE / 1_000} seconds ${what} did not happen`)
    await pause(every)
  }
}

/** Resolves to the first value that is not undefined. */
export async function untilFound<T>(find: () => T | undefined | Promise<T | undefined>, what?: string): Promise<T> {
  let found: T | undefined
  const look = async () => {
    found = await find()
    return found !== undefined
  }
  await until(look, what)
  return found as T
}

/** Acts again and again until the condition holds. */
export async function repeatUntil(act: () => unknown, condition: () => boolean, what = 'it'): Promise<void> {
  const deadline = Date.now() + PATIENCE
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`In ${PATIENCE / 1_000} seconds ${what} did not happen`)
    await act()
    for (let waited = 0; waited < REPEAT_AFTER && !condition(); waited += LOOK_EVERY) await pause(LOOK_EVERY)
  }
}

/**
 * Passes for so many milliseconds. For tests of what must not happen meanwhile: a busy machine makes such a test weaker, not
 * red.
 */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
