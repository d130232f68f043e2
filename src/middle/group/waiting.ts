/** Tells a client whose list waits for servers which ones these are: by progress and in the log, as it wants them. */

import { printable } from '../../base/texts/printable.js'
import type { Call } from '../../mcp/protocol/call.js'
import { isWantedLevel } from '../../mcp/protocol/methods.js'
import { TELL_WAITING, waitingLog, waitingProgress } from '../../mcp/protocol/waiting.js'
import type { Member } from './member.js'

/** Most servers that are named, and characters of a name. */
const MAX_AWAITED = 5
const MAX_AWAITED_NAME = 60

/** A list that is being made. */
export interface WaitingList {
  /** To be called when nothing is expected of a server any more. */
  has(member: Member): void
  over(): void
}

/** Undefined if the client wants to know nothing. */
export function tellWaiting(call: Call, members: readonly Member[]): WaitingList | undefined {
  const logs = isWantedLevel('info', call.caller.logLevel)
  if (!call.progress && !logs) return undefined
  const left = new Set(members)
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const tell = async () => {
    if (left.size > 0) {
      const message = inWords(left, members.length)
      if (call.progress) await call.notify(waitingProgress(message))
      if (logs && !isOver) await call.notify(waitingLog(message))
    }
    if (!isOver) later(TELL_WAITING.every)
  }
  const later = (milliseconds: number) => {
    // A client that has gone is told nothing.
    timer = setTimeout(() => {
      tell().catch(() => {})
    }, milliseconds)
  }
  later(TELL_WAITING.after)
  return {
    has: (member) => left.delete(member),
    over() {
      isOver = true
      clearTimeout(timer)
    },
  }
}

function inWords(left: ReadonlySet<Member>, count: number): string {
  const names = [...left].map(({ server }) => printable(server, MAX_AWAITED_NAME))
  const more = names.length > MAX_AWAITED ? ` and ${names.length - MAX_AWAITED} more` : ''
  return `Waiting for ${names.slice(0, MAX_AWAITED).join(', ')}${more}: ${count - left.size} of ${count} servers have answered`
}
