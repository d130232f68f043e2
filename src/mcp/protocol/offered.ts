/** Finds out what servers offer: by the capabilities that they declare, or by their lists if they declare none. */
import { arrayIn, EMPTY, edit, type Json, objectIn, opens, type Payload } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'

/** Capabilities with a list, which shows whether a server has them: `tools` is in the result of `tools/list`. */
const LISTED = ['tools', 'prompts', 'resources'] as const
const NAMES = [...LISTED, 'logging', 'completions']

/**
 * The capabilities that a server declares. A capability that is not an object, such as `true`, or `[]` from PHP, counts as
 * an empty object; null and false count as absent.
 */
export function declaredBy(answer: Payload): Payload {
  const declared = objectIn(answer, 'capabilities') ?? EMPTY
  const edits: Record<string, Json | undefined> = {}
  for (const name of NAMES) {
    const begins = opens(declared, name) ?? '{'
    if (begins !== '{') edits[name] = begins === 'n' || begins === 'f' ? undefined : '{}'
  }
  return edit(declared, edits)
}

/** Whether a server declares none of the capabilities with lists. It may have lists all the same. */
export function declaresNoList(capabilities: Payload): boolean {
  return LISTED.every((capability) => opens(capabilities, capability) !== '{')
}

/** Milliseconds to wait for other lists after the list of tools. */
const OTHER_LISTS = 1_000

/**
 * Asks a server for the first pages of all lists, and calls `found` for each capability that it has, early or late. Resolves soon
 * after the list of tools is answered or refused.
 */
export async function askForLists(
  ask: (method: string) => Promise<Payload | undefined>,
  found: (capability: string) => void,
): Promise<void> {
  const answers = LISTED.map(async (capability) => {
    const page = await ask(`${capability}/list`).catch(() => undefined)
    if (page && arrayIn(page, capability)) found(capability)
  })
  await answers[0]
  await within(Promise.all(answers), OTHER_LISTS)
}
