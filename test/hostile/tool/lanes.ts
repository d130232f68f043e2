/** Sends the corpus to a front, in every splitting, and looks at what comes of each input. */
import { KEY, type Request, type Text } from '../corpus/input.js'
import type { Random } from '../corpus/random.js'
import { SPLITS, split } from '../corpus/splits.js'
import { type ExchangeOptions, exchange } from './exchange.js'
import { type Front, fill } from './fronts.js'
import type { Verdict } from './verdict.js'

/** Inputs of a front that are on their way at once. */
const AT_ONCE = 1
/** After so many runs it is looked whether the front still answers. */
const CHECK_EVERY = 30
/** Milliseconds that half a request is held before its client goes. */
const HELD = 500
/** Milliseconds in which a request that does not go on has to be given up. */
const GIVEN_UP = 60_000

/** Keys of calls that were refused, by the keys of their runs. What has run is compared with it in the end. */
export type Keys = Map<string, string>

let lastKey = 0

/** One input as bytes, and what it is called. */
interface Run extends Pick<Request, 'kind' | 'name' | 'want' | 'broken'> {
  bytes: Buffer
}

export function textRuns(front: Front, all: Iterable<Text>): Iterable<Run> {
  return Array.from(all, (text) => ({ ...text, bytes: front.requestWith(text) }))
}

/** Sends all of these, and checks in between that a good request is answered. */
export async function runAll(
  front: Front,
  all: Iterable<Run>,
  verdict: Verdict,
  random: Random,
  keys: Keys,
  { atOnce = AT_ONCE, ...options }: ExchangeOptions & { atOnce?: number } = {},
): Promise<void> {
  const waiting = Array.from(all)
  verdict.inputs += waiting.length
  let since = 0
  const worker = async () => {
    for (let input = waiting.shift(); input; input = waiting.shift())
      for (const how of SPLITS) {
        const where = `${front.name}, ${input.kind}: ${input.name}, ${how}`
        const key = `key-${String(++lastKey).padStart(8, '0')}`
        const keyed = Buffer.from(input.bytes.toString('latin1').replaceAll(KEY, key), 'latin1')
        if (input.want === 'refused') keys.set(key, where)
        const outcome = await exchange(front.url, split(fill(keyed, front.places), how, random), options)
        if (options.leaveAfter === undefined) verdict.judge(where, outcome, input, front.unchanged)
        else verdict.runs++
        if (++since % CHECK_EVERY === 0 && !(await front.answers())) verdict.fail('stuck', where)
      }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  if (!(await front.answers())) verdict.fail('stuck', `${front.name}, at the end`)
}

/** Sends parts of requests, and goes, or ends only its half of the connection. */
export async function runHalves(front: Front, all: Iterable<Run>, verdict: Verdict, random: Random): Promise<void> {
  const inputs = Array.from(all)
  await runAll(front, inputs, verdict, random, new Map(), { leaveAfter: HELD, atOnce: inputs.length })
  await runAll(front, inputs, verdict, random, new Map(), {
    halfClose: true,
    patience: GIVEN_UP,
    atOnce: inputs.length,
  })
}
