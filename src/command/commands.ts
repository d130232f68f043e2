/** Finds commands by their words and flags. */
import { COMMANDS, type CommandRow } from './command-table.js'
import type { FlagName } from './flags.js'

export type CommandName = keyof typeof COMMANDS

export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]

/** Flags of every command. */
export const EVERYWHERE: readonly FlagName[] = ['help', 'version']

/** First words of commands: `trust`, `auth` and all one-word commands. */
export const FIRST_WORDS: readonly string[] = [...new Set(COMMAND_NAMES.map((name) => name.split(' ')[0] as string))]

export function rowOf(name: CommandName): CommandRow {
  return COMMANDS[name]
}

/** The longest command that words begin with. */
export function commandIn(words: readonly string[]): CommandName | undefined {
  return COMMAND_NAMES.filter((name) => name.split(' ').every((word, i) => word === words[i])).toSorted(
    (a, b) => b.length - a.length,
  )[0]
}

/** Commands that begin with these words. */
export function commandsUnder(words: readonly string[]): CommandName[] {
  return COMMAND_NAMES.filter((name) => `${name} `.startsWith(`${words.join(' ')} `))
}

/** Commands that take a flag. */
export function commandsWith(flag: FlagName): CommandName[] {
  return COMMAND_NAMES.filter((name) => rowOf(name).flags.includes(flag))
}
