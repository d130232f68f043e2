/** Answers `server/discover` of a group with the merged answers of its servers, which are remembered for each caller. */

import { edit } from '../../base/rpc/splice.js'
import type { CacheHint, Call, Final } from '../../mcp/protocol/call.js'
import type { ChangingList } from '../../mcp/protocol/subscriptions.js'
import { whoOf } from '../policy/who.js'
import { unaddressed } from './asking.js'
import type { Inside } from './inside.js'
import { activeIn } from './member.js'
import {
  type DiscoverAnswer,
  joinedDiscovery,
  joinedInstructions,
  joinedMeta,
  leastHint,
  offersEventsIn,
  offersIn,
} from './merge.js'
import { checkRequired, unavailable } from './missing.js'
import { HOW_TO_SEARCH } from './search-tools.js'

/** Milliseconds for which discovery waits. The merged answer lacks slower servers. */
const DISCOVER_WAIT = 1_000

export class GroupDiscovery {
  readonly #inside: Inside

  constructor(inside: Inside) {
    this.#inside = inside
  }

  /** The answer of the group. Rejects with a Fault if a required server is missing. */
  async answer(call: Call): Promise<Final> {
    const plan = this.#inside.plan()
    const { found, missing, hints } = await this.#ask(call)
    checkRequired(plan, missing)
    const hasAll = missing.every(({ member }) => found.some(({ server }) => server === member.server))
    const isComplete = hasAll && activeIn(this.#inside.plan()).length === this.#inside.plan().members.length
    const { bareNames, instructionBytes: most, search } = plan
    const own = search ? HOW_TO_SEARCH : undefined
    const instructions = plan.instructions ?? joinedInstructions(found, { bareNames, most, own })
    const result = joinedDiscovery(found, { isComplete, instructions, hasTools: search !== undefined })
    const meta = joinedMeta([], unavailable(missing))
    return {
      kind: 'result',
      result: meta === undefined ? result : edit(result, { _meta: meta }),
      server: this.#inside.identity(),
      cache: leastHint(missing.length > 0 ? [] : hints),
    }
  }

  /** The results of all active servers for this caller; undefined if one is missing. */
  #known(call: Call): readonly DiscoverAnswer[] | undefined {
    const who = whoOf(call)
    const members = activeIn(this.#inside.plan())
    const known = members.flatMap((member) => {
      const result = this.#inside.listings.discovered(who, member)
      return result ? [{ server: member.server, prefix: member.prefix, result }] : []
    })
    return known.length === members.length ? known : undefined
  }

  /** The results of the servers for this caller: remembered ones, and those that arrive in time. */
  async describe(call: Call): Promise<readonly DiscoverAnswer[]> {
    return this.#known(call) ?? (await this.#ask(unaddressed(call, 'server/discover'))).found
  }

  /** The lists of these that the group offers. All, if a server has not answered or is not active: it may offer any. */
  offered(call: Call, lists: readonly ChangingList[]): readonly ChangingList[] {
    const described = this.#known(call)
    if (described?.length !== this.#inside.plan().members.length) return lists
    return lists.filter((list) =>
      described.some((one) => ('capability' in list ? offersIn(one, list.capability) : offersEventsIn(one))),
    )
  }

  /** Whether no server has events. A server that is missing may have some. */
  async lacksEvents(call: Call): Promise<boolean> {
    const who = whoOf(call)
    const likely = activeIn(this.#inside.plan()).flatMap(
      (member) => this.#inside.listings.likelyDiscovered(who, member) ?? [],
    )
    if (likely.some((result) => offersEventsIn({ result }))) return false
    const described = await this.describe(call)
    return described.length === this.#inside.plan().members.length && !described.some(offersEventsIn)
  }

  async #ask(call: Call) {
    const { plan, asking, listings, kept, sleepers } = this.#inside
    const asker = whoOf(call)
    if (kept) await Promise.all(activeIn(plan()).map((member) => kept.restored(asker, member)))
    const members = activeIn(plan())
    const asked = members.filter(
      (member) => !listings.likelyDiscovered(asker, member) || !sleepers.sleeps(call, member),
    )
    const areKnown = asked.every((member) => listings.likelyDiscovered(asker, member))
    const answers = await asking.ask(
      call,
      asked.map((member) => ({ member })),
      { most: areKnown ? Math.min(DISCOVER_WAIT, plan().wait.known) : DISCOVER_WAIT },
    )
    const hints: (CacheHint | undefined)[] = []
    for (const { question, asked: answer } of answers) {
      if (answer.kind !== 'answer') continue
      listings.learnDiscovered(question.who, question.member, answer.reply.result)
      hints.push(answer.reply.cache)
    }
    const found = members.flatMap((member): DiscoverAnswer[] => {
      const result = listings.likelyDiscovered(asker, member)
      return result ? [{ server: member.server, prefix: member.prefix, result }] : []
    })
    const missing = answers.flatMap(({ question: { member }, asked: answer }) =>
      answer.kind === 'missing' ? { member, missing: answer } : [],
    )
    return { found, missing, hints }
  }
}
