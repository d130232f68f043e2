/**
 * The end of a turn of the event loop. What is sent then, for all calls of the turn, is sent in a row: a peer that sleeps is
 * woken once. To wake it is most of what a small write costs, and a peer whose messages come one by one sleeps in between.
 */

let actions: (() => void)[] = []

/** Calls a function when the events of this turn have been handled, in the order of the calls. It must not throw. */
export function atTurnEnd(action: () => void): void {
  if (actions.push(action) === 1) setImmediate(endTurn)
}

/** Keeps what is written to a stream until the events of this turn have been handled. */
export function corkUntilTurnEnd(stream: { cork(): void; uncork(): void }): void {
  stream.cork()
  atTurnEnd(() => stream.uncork())
}

function endTurn(): void {
  const due = actions
  actions = []
  for (const action of due) action()
}
