/**
 * Delays writes to the end of a turn of the event loop, so that the messages of all calls of the turn are sent in a row.
 * This wakes a sleeping peer once; otherwise it would sleep again between messages. Waking it is most of the cost of a
 * small write.
 */

let actions: (() => void)[] = []

/** Calls a function after all events of this turn have been handled. Functions run in order, and must not throw. */
export function atTurnEnd(action: () => void): void {
  if (actions.push(action) === 1) setImmediate(endTurn)
}

/** Buffers writes to a stream until all events of this turn have been handled. */
export function corkUntilTurnEnd(stream: { cork(): void; uncork(): void }): void {
  stream.cork()
  atTurnEnd(() => stream.uncork())
}

function endTurn(): void {
  const due = actions
  actions = []
  for (const action of due) action()
}
