/** Reads `WWW-Authenticate` challenges (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1). */
import { readScopes } from './scopes.js'

/** One challenge. */
export interface Challenge {
  /** In lower case. */
  readonly scheme: string
  /** Names in lower case. Of equal names the first counts. */
  readonly params: ReadonlyMap<string, string>
}

/** What a server's challenges require of a client that sends tokens. */
export interface Wanted {
  /** The `resource_metadata` parameter: where the server says that its metadata is. */
  metadata: string | undefined
  /** In the order of the challenge; undefined if it names none. */
  scopes: readonly string[] | undefined
  error: string | undefined
  /** The server takes only tokens that are bound to a key (RFC 9449, 7.1). */
  dpop: boolean
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
/** A parameter, or a word: the name of a scheme, or a token68. */
const ITEM = new RegExp(`([\\s,]*)(?:(${TOKEN})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))|([\\w.~+/-]+=*))`, 'y')
const MAX_CHALLENGE = 16 * 1024
const MAX_CHALLENGES = 16
/** Schemes that send tokens. */
const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'dpop'])

/** All challenges of all header lines; a line may have several. Reading a line ends where it is invalid. */
export function readChallenges(lines: readonly string[]): readonly Challenge[] {
  return lines.flatMap((line) => readLine(line.slice(0, MAX_CHALLENGE))).slice(0, MAX_CHALLENGES)
}

/** What the challenges require of a client that sends tokens, combined. */
export function wantedBy(challenges: readonly Challenge[]): Wanted {
  const first = (name: string) =>
    challenges.flatMap(({ scheme, params }) => (SCHEMES.has(scheme) ? (params.get(name) ?? []) : []))[0]
  const scope = first('scope')
  return {
    metadata: first('resource_metadata'),
    scopes: scope === undefined ? undefined : readScopes(scope),
    error: first('error'),
    dpop: has(challenges, 'dpop') && !has(challenges, 'bearer'),
  }
}

function has(challenges: readonly Challenge[], name: string): boolean {
  return challenges.some(({ scheme }) => scheme === name)
}

function readLine(line: string): Challenge[] {
  const found: (Challenge & { params: Map<string, string> })[] = []
  ITEM.lastIndex = 0
  for (let item = ITEM.exec(line), bare = false; item !== null; item = ITEM.exec(line)) {
    const [, gap = '', name, quoted, plain, word] = item
    if (name !== undefined) {
      const params = found.at(-1)?.params
      const key = name.toLowerCase()
      if (params && !params.has(key)) params.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '')
      bare = false
    } else if (bare && !gap.includes(',')) {
      // A scheme for other credentials: skip its parameters.
      bare = false
    } else {
      found.push({ scheme: (word as string).toLowerCase(), params: new Map() })
      bare = true
    }
  }
  return found
}
