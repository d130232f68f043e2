/** Pairs of a client and a server, of which `npm test` takes some where all take long. */
import { combinations, type Part } from '../support/part.js'
import { CLIENTS, type ClientKind } from './clients.js'
import { SERVERS, type ServerKind } from './servers.js'

/** Some have each client and each server once, and most of them translate: the tables have the same order. */
export function pairsOf(part: Part): [ClientKind, ServerKind][] {
  return combinations(CLIENTS, SERVERS.toReversed(), part)
}
