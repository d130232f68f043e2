/**
 * What Redis answers instead of doing what it is asked: it is read-only, full, loading, or denies a command. Keeps what it
 * refuses, tries that again until it does it, and says what an operator can do.
 */

/** What the bridge needs of Redis: to keep values, to count, to send messages. */
export type Need = 'keys' | 'counts' | 'channels'

interface RefusedNeedsOptions {
  /** Tries the commands of a need, at best for this key. Rejects if they fail. */
  attempt(need: Need, key: string | undefined): Promise<unknown>
  /** Connects again, because the address may lead to another Redis by now. */
  connectAnew(): void
  /** Called when nothing is refused any more. `anew`: because of another connection. */
  over(anew: boolean): void
}

/** Milliseconds between attempts while something is refused. */
const AGAIN = 1_000

/** Refused of a Redis that is not the one to ask, or not yet. Another connection may lead to another one. */
const ELSEWHERE: ReadonlySet<string> = new Set(['READONLY', 'MOVED', 'ASK', 'LOADING', 'MASTERDOWN'])

/** What an operator can do, by words of Redis. The first row that fits counts. */
const ADVICE: readonly (readonly [words: RegExp, next: string])[] = [
  [
    /\bREADONLY\b/,
    'The address leads to a replica of Redis. Nothing has to be done after a failover: the bridge connects again until it leads to the primary. Otherwise give the address of the primary.',
  ],
  [
    /\b(MOVED|ASK|CLUSTERDOWN|CROSSSLOT)\b/,
    'This is a node of a Redis Cluster. Name its nodes in "redis.cluster" instead of "redis.url"; if they are named there, see CLUSTER INFO of Redis.',
  ],
  [/\bLOADING\b/, 'Redis reads its data. Nothing has to be done: the bridge connects again until it has.'],
  [
    /\bNOPERM\b|permission|ACL failure/,
    'Let the account of the bridge use PING, GET, SET, DEL, EVAL, MULTI, EXEC, INCR, PTTL, PUBLISH and SUBSCRIBE with the keys and channels that begin with "redis.prefix" (ACL SETUSER of Redis; ACL LOG names what was denied).',
  ],
  [
    /\bNOAUTH\b/,
    'Redis requires a password. Write it into the address: redis://:password@host or redis://user:password@host.',
  ],
  [/AUTH.*(?:without any|no) password/, 'Redis has no password: remove the one in its address, or set one in Redis.'],
  [/\bWRONGPASS\b|invalid (username|password)/, 'Check the user and password in the address of Redis.'],
  [
    /\bDENIED\b|protected mode/,
    'Redis is in protected mode: it has no password and accepts only connections of its own machine. Set a password in Redis and in the address.',
  ],
  [
    /max number of clients/,
    'Raise "maxclients" of Redis, or end connections of other programs (CLIENT LIST of Redis).',
  ],
  [/\bOOM\b/, 'Redis has no memory left. Raise its "maxmemory", or remove data of other programs.'],
  [/\bMISCONF\b/, 'Redis cannot write to its disk. Its log has the reason.'],
  [/\bNOREPLICAS\b/, 'Redis has too few replicas of its own ("min-replicas-to-write").'],
  [/\bMASTERDOWN\b/, 'Redis has lost its primary. The bridge connects again until there is one.'],
  [/\bBUSY\b/, 'A script of another program keeps Redis busy: SCRIPT KILL ends it.'],
  [
    /unknown command|unknown subcommand/i,
    'What answers at this address lacks a command that the bridge needs. Use Redis, or what has all of its commands.',
  ],
  [
    /DB index|SELECT is not allowed/,
    'The number of the database in the address of Redis is too high. A Redis Cluster has only database 0.',
  ],
  [/closed unexpectedly/, 'If Redis uses TLS, begin its address with rediss://. Otherwise see the log of Redis.'],
]

/** The first word of an error of Redis, such as READONLY. Empty if Redis has said nothing. */
export function codeOf({ message }: Error): string {
  return /(?:^|: |-)([A-Z]{2,}) /.exec(message)?.[1] ?? ''
}

/** What to do after an error; undefined if that is unknown. */
export function adviceOn({ message }: Error): string | undefined {
  return ADVICE.find(([words]) => words.test(message))?.[1]
}

/** What is refused now. */
export class RefusedNeeds {
  readonly #options: RefusedNeedsOptions
  /** The key of the command that was refused, by need. */
  readonly #refused = new Map<Need, string | undefined>()
  #timer: NodeJS.Timeout | undefined
  #anew = false
  #closed = false

  constructor(options: RefusedNeedsOptions) {
    this.#options = options
  }

  get any(): boolean {
    return this.#refused.size > 0
  }

  add(need: Need, key: string | undefined, error: Error): void {
    if (this.#closed) return
    const isKnown = this.#refused.has(need)
    this.#refused.set(need, key)
    if (!isKnown) this.#leave(error)
    this.#later()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #leave(error: Error): void {
    if (!ELSEWHERE.has(codeOf(error))) return
    this.#anew = true
    this.#options.connectAnew()
  }

  #later(): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => void this.#again(), AGAIN).unref()
  }

  /** Tries what is refused, one after the other. */
  async #again(): Promise<void> {
    const refused = [...this.#refused]
    for (const [need, key] of refused) {
      try {
        await this.#options.attempt(need, key)
        this.#refused.delete(need)
      } catch (error) {
        this.#leave(((error as Error).cause as Error) ?? error)
      }
    }
    this.#timer = undefined
    if (this.any) return this.#later()
    const anew = this.#anew
    this.#anew = false
    this.#options.over(anew)
  }
}
