/** Forged states, and real ones in the wrong place: all are refused, and nothing of them reaches the server. */
import { ADA, NAME, type Round, talk } from '../../support/asking.js'
import type { Random } from '../corpus/random.js'
import { forgeries } from '../corpus/states.js'
import { TOKENS } from './fronts.js'
import type { Verdict } from './verdict.js'

const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })
/** Forgeries that are made of one state, before it is too old to be forged. */
const EACH = 150
/** Retries at once with one state, of which one is right. */
const AT_ONCE = 20

const said = ({ keys }: Round, name: string) => ({ [String(keys[0])]: { action: 'accept', content: { name } } })

/** `count` forgeries; a state is given up after `expires` milliseconds. */
export async function runStates(url: string, count: number, expires: number, verdict: Verdict, random: Random) {
  const client = talk(url)
  const asked = () => client.steps([{ ask: [NAME] }], {}, as('alice'))
  const answersOf = (round: Round) => ({ [String(round.keys[0])]: ADA })
  const old = await asked()
  const expired = new Promise((resolve) => setTimeout(resolve, expires + 2_000))
  /** Makes a call once more that is to be refused. */
  const refuse = async (name: string, round: Round, changes: Record<string, unknown>, who = as('alice')) => {
    verdict.inputs++
    verdict.runs++
    const { message, status } = await client.again(round, answersOf(round), changes, who)
    if (status >= 500) verdict.fail('serverErrors', `state, ${name}: ${status} ${JSON.stringify(message)}`)
    if (message.error?.code !== -32602) verdict.fail('statesAccepted', `${name}: ${JSON.stringify(message)}`)
  }
  for (let made = 0; made < count; ) {
    const [round, other] = [await asked(), await asked()]
    for (const [name, requestState] of forgeries(round.state, other.state, random, EACH)) {
      await refuse(name, round, { requestState })
      made++
    }
    await refuse('of somebody else', round, {}, as('mallory'))
    await refuse('with other arguments', round, { arguments: { steps: [{ ask: [NAME] }], more: 1 } })
    await refuse('with another tool', round, { name: 'act' })
    // All of that has not harmed it.
    const { message } = await client.again(round, answersOf(round), {}, as('alice'))
    if (!message.result) verdict.fail('stuck', `a real state after forgeries: ${JSON.stringify(message)}`)
    // The same answers again are told what became of them; others are not taken any more.
    await refuse('used already', round, { inputResponses: said(round, 'Eve') })
    const retries = Array.from({ length: AT_ONCE }, (_, n) =>
      client.again(other, said(other, `Ada ${n}`), {}, as('alice')),
    )
    const taken = (await Promise.all(retries)).filter((each) => each.message.result)
    verdict.inputs++
    verdict.runs += AT_ONCE
    if (taken.length !== 1) verdict.fail('statesAccepted', `one state ${AT_ONCE} times at once: ${taken.length} taken`)
  }
  await expired
  await refuse('too old', old, {})
}
