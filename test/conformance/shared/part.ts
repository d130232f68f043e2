/** The part that one of several servers has: `--part 2/5` stands for every fifth of everything, from the third on. */
import { argv } from 'node:process'

const [, which, count] = /(?:^| )--part (\d+)\/(\d+)(?: |$)/.exec(argv.slice(2).join(' ')) ?? []

/** What this server has of a list: all of it, unless it was told otherwise. */
export function part<T>(all: readonly T[]): T[] {
  return count === undefined ? [...all] : all.filter((_, i) => i % Number(count) === Number(which))
}
