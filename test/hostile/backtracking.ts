/** Runs a regular expression as a backtracking engine does, and counts the characters that it looks at. */

/** Tries to go on at a place of a text. */
type Match = (text: string, at: number, next: (at: number) => boolean) => boolean
interface Parsed {
  match: Match
  /** A text that this part takes, as short as it can be with something in each part. */
  sample: string
}

const PROBES = Array.from(' \ta0Az"\\/.,:;=-_[]{}()@#?*$%~\u00e9\u200b\n\u0000')

export class Backtracking {
  /** Characters that its parts take, for texts that are to keep it busy. */
  readonly alphabet = new Set<string>()
  readonly sample: string
  /**
   * Whether no text can keep it busy, because of its form: without repetitions that have no end, each place of a text
   * costs a bounded number of steps; with one, tried at the start of a text only, each character does.
   */
  readonly linear: boolean
  readonly #match: Match
  readonly #source: string
  readonly #flags: string
  #at = 0
  #steps = 0
  #most = 0
  #unbounded = 0
  #ways = 0

  constructor({ source, flags }: RegExp) {
    this.#source = source
    this.#flags = flags.replace(/[gyd]/g, '')
    const { match, sample } = this.#choice()
    if (this.#at !== source.length) throw new Error(`Not understood from ${source.slice(this.#at)} on: ${source}`)
    this.#match = match
    this.sample = sample
    const once = source.startsWith('^') && this.#ways === 0 && !flags.includes('m')
    this.linear = this.#unbounded === 0 || (this.#unbounded === 1 && once)
  }

  /** Steps that it takes to find out whether it matches anywhere; at most `most`. */
  stepsOn(text: string, most: number): number {
    this.#steps = 0
    this.#most = most
    try {
      for (let start = 0; start <= text.length; start++) if (this.#match(text, start, () => true)) break
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
    return this.#steps
  }

  #choice(): Parsed {
    const ways = [this.#sequence()]
    while (this.#take('|')) {
      this.#ways++
      ways.push(this.#sequence())
    }
    const match: Match = (text, at, next) => ways.some((way) => way.match(text, at, next))
    return { match, sample: (ways.find(({ sample }) => sample !== '') ?? ways[0])?.sample ?? '' }
  }

  #sequence(): Parsed {
    const parts: Parsed[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#source.charAt(this.#at))) parts.push(this.#repeated())
    const from =
      (index: number): Match =>
      (text, at, next) => {
        const part = parts[index]
        return part ? part.match(text, at, (then) => from(index + 1)(text, then, next)) : next(at)
      }
    return { match: from(0), sample: parts.map(({ sample }) => sample).join('') }
  }

  #repeated(): Parsed {
    const part = this.#atom()
    const [all, symbol, least, comma, most] =
      /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.#source.slice(this.#at)) ?? []
    if (all === undefined) return part
    this.#at += all.length
    const min = symbol === undefined ? Number(least) : symbol === '+' ? 1 : 0
    const unbounded = symbol === undefined ? comma !== '' && most === '' : symbol !== '?'
    if (unbounded) this.#unbounded++
    const max = unbounded ? Number.POSITIVE_INFINITY : symbol === '?' ? 1 : Number(most || least)
    const lazy = all.endsWith('?') && all !== '?'
    const times =
      (done: number): Match =>
      (text, at, next) => {
        const more = () =>
          done < max && part.match(text, at, (then) => (then > at || done < min) && times(done + 1)(text, then, next))
        const enough = () => done >= min && next(at)
        return lazy ? enough() || more() : more() || enough()
      }
    return { match: times(0), sample: part.sample.repeat(Math.max(1, min)) }
  }

  #atom(): Parsed {
    if (this.#take('^')) return assertion((_text, at) => at === 0)
    if (this.#take('$')) return assertion((text, at) => at === text.length)
    if (this.#take('\\b') || this.#take('\\B')) return assertion(() => true)
    if (this.#take('(')) return this.#group()
    const rest = this.#source.slice(this.#at)
    const [one] = /^(?:\[(?:[^\]\\]|\\.)*\]|\\[pP]\{[^}]*\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|.)/i.exec(rest) ?? []
    if (one === undefined) throw new Error(`No atom: ${rest}`)
    this.#at += one.length
    return this.#oneOf(new RegExp(`^${one}$`, this.#flags))
  }

  #group(): Parsed {
    const ahead = this.#take('?=') || this.#take('?!')
    const behind = this.#take('?<!')
    const after = this.#take('?<=')
    const kind = /^\?(?::|<\w+>)/.exec(this.#source.slice(this.#at))
    if (kind) this.#at += kind[0].length
    const inner = this.#choice()
    if (!this.#take(')')) throw new Error(`No end of a group: ${this.#source}`)
    // What it decides does not matter here, only what it looks at.
    if (after) return assertion((text, at) => at > 0 && inner.match(text, at - 1, (then) => then === at))
    if (behind) return assertion((text, at) => at === 0 || !inner.match(text, at - 1, (then) => then === at))
    if (ahead) return assertion((text, at) => inner.match(text, at, () => true) || true)
    return inner
  }

  #oneOf(one: RegExp): Parsed {
    const known = new Map<string, boolean>()
    const takes = (character: string) => {
      const taken = known.get(character) ?? one.test(character)
      known.set(character, taken)
      return taken
    }
    const taken = [...PROBES, one.source.replace(/^\^\\?|\$$/g, '')].filter((text) => text.length === 1 && takes(text))
    for (const character of taken.slice(0, 2)) this.alphabet.add(character)
    const match: Match = (text, at, next) => {
      if (++this.#steps > this.#most) throw new RangeError('Too many steps')
      return at < text.length && takes(text.charAt(at)) && next(at + 1)
    }
    return { match, sample: taken.at(-1) ?? '' }
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }
}

function assertion(holds: (text: string, at: number) => boolean): Parsed {
  return { match: (text, at, next) => holds(text, at) && next(at), sample: '' }
}
