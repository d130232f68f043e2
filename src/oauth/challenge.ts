/** Reads `WWW-Authenticate`: what a server wants before it takes a request (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1). */
import { readScopes } from './scopes.js'

export interface Challenge {
  /** In lower case. */
  readonly scheme: string
  /** Names in lower case. Where a name stands twice, the first counts. */
  readonly params: ReadonlyMap<string, string>
}

/** What a server wants of a client that brings tokens. */
export interface Wanted {
  /** Where the metadata of the resource are, says the server. */
  metadata: string | undefined
  /** In the order of the challenge; undefined where it names none. */
  scopes: readonly string[] | undefined
  error: string | undefined
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
/** A parameter, else a word: the name of a scheme or its token68. */
const ITEM = new RegExp(`([\\s,]*)(?:(${TOKEN})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))|([\\w.~+/-]+=*))`, 'y')
const MAX_LINE = 16 * 1024
const MAX_CHALLENGES = 16
/** Schemes under which tokens are sent. */
const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'dpop'])

/** All challenges of all lines, several of which may stand in one. What cannot be read ends its line. */
export function readChallenges(lines: readonly string[]): readonly Challenge[] {
  return lines.flatMap((line) => readLine(line.slice(0, MAX_LINE))).slice(0, MAX_CHALLENGES)
}

/** What the challenges want of a client that brings tokens, taken together. */
export function wantedBy(challenges: readonly Challenge[]): Wanted {
  const first = (name: string) =>
    challenges.flatMap(({ scheme, params }) => (SCHEMES.has(scheme) ? (params.get(name) ?? []) : []))[0]
  const scope = first('scope')
  return {
    metadata: first('resource_metadata'),
    scopes: scope === undefined ? undefined : readScopes(scope),
    error: first('error'),
  }
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
      // Credentials of another kind: nothing that is understood here.
      bare = false
    } else {
      found.push({ scheme: (word as string).toLowerCase(), params: new Map() })
      bare = true
    }
  }
  return found
}
