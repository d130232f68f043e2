/** Splits arguments by the tables of commands and flags: the command, its words, its flags, and the program of a server. */
import { parseArgs } from 'node:util'
import { nearest } from '../base/texts/nearest.js'
import { quoted } from '../base/texts/shell.js'
import { addressHint } from '../config/address-hint.js'
import { OPTIONS, SERVER_KEYS } from '../config/settings.js'
import { isProgram } from '../servers/transport/stdio/on-path.js'
import {
  COMMAND_NAMES,
  type CommandName,
  commandIn,
  commandsUnder,
  commandsWith,
  EVERYWHERE,
  FIRST_WORDS,
  rowOf,
} from './commands.js'
import { FLAGS, type Flag, type FlagName, type Flags, flagOf } from './flags.js'
import { insteadOf, insteadOfWord } from './habits.js'
import { UsageError } from './usage-error.js'

export const CONFIG_FILE = /\.(?:jsonc?|json5|toml)$/

export interface Arguments {
  command: CommandName
  /** Words after the command. */
  words: readonly string[]
  flags: Flags
  /** The program of a server and its arguments; empty without one. */
  program: readonly string[]
}

export const IN_ONE_WORD = /^(?:(?:sse\+)?(?:https?:\/\/|unix:)|stdio:)/

/** Splits arguments. Throws a UsageError. */
export function readArguments(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Arguments {
  const { tokens, program: afterDashes } = tokensIn(argv)
  checkDashes(argv, tokens)
  const first = tokens.find((token) => token.kind === 'positional')
  const isNamed = first !== undefined && FIRST_WORDS.includes(first.value)
  const isCommand = first === undefined || isNamed || IN_ONE_WORD.test(first.value)
  // Everything after a word that is no command may belong to a program of that name.
  const own = isCommand ? tokens : tokens.filter(({ index }) => index <= first.index)
  const given = own.flatMap((token) => (token.kind === 'option' ? [{ ...token, next: wordAfter(token, tokens) }] : []))
  const said = own.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
  // Help takes precedence over mistakes.
  if (given.some(({ name }) => name === 'help')) {
    const named = isNamed ? (commandIn(said)?.split(' ') ?? said) : []
    return { command: 'help', words: named, flags: {}, program: [] }
  }
  if (!isCommand) {
    const flags = flagsIn(given, 'serve')
    if (!flags.version) throw unknownCommand(first.value, isProgram(first.value, env, flags.cwd))
    return { command: 'serve', words: [], flags, program: [] }
  }
  const command = isNamed ? commandIn(said) : 'serve'
  if (command === undefined) throw incomplete(said)
  const words = isNamed ? said.slice(command.split(' ').length) : said
  // The server of these commands is one word.
  const server = command === 'probe' || command === 'bundle' ? words[0] : command === 'replay' ? words[1] : undefined
  const flags = flagsIn(given, command)
  // With a file, the word is the name of one of its servers.
  if (server !== undefined && !IN_ONE_WORD.test(server) && flags.config === undefined) throw notAsked(server, command)
  return { command, words, flags, program: afterDashes }
}

/** Whether arguments name a command for people, judged from possibly invalid arguments. */
export function isForPeople(argv: readonly string[]): boolean {
  const first = tokensIn(argv).tokens.find((token) => token.kind === 'positional')
  return first !== undefined && first.value !== 'serve' && FIRST_WORDS.includes(first.value)
}

function tokensIn(argv: readonly string[]) {
  const dashes = argv.indexOf('--')
  const before = dashes < 0 ? [...argv] : argv.slice(0, dashes)
  const dashed = dashedWords(before)
  const args = before.filter((_, at) => !dashed.includes(at))
  const options = Object.fromEntries(
    Object.entries(FLAGS).map(([name, flag]) => [
      name,
      {
        type: 'value' in flag ? ('string' as const) : ('boolean' as const),
        ...('short' in flag && { short: flag.short }),
      },
    ]),
  )
  const { tokens } = parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true })
  const words = dashed.map((at) => ({ kind: 'positional' as const, index: args.length, value: before[at] as string }))
  return { tokens: [...tokens, ...words], program: dashes < 0 ? [] : argv.slice(dashes + 1) }
}

/** Positions of words that may begin with a dash: the id of a key, and negated words of a filter. */
function dashedWords(argv: readonly string[]): number[] {
  if (/^trust key remove [^-]/.test(argv.slice(0, 4).join(' '))) return argv.length > 4 ? [4] : []
  if (argv.find((word) => !word.startsWith('-')) !== 'tail') return []
  return argv.flatMap((word, at) => (/^-[^-]./.test(word) ? [at] : []))
}

interface Given {
  name: string
  rawName: string
  value: string | undefined
  inlineValue: boolean | undefined
  /** The next word, which is the value of an unknown flag. */
  next: string | undefined
}

type Token = ReturnType<typeof tokensIn>['tokens'][number]

function wordAfter({ index }: Token, tokens: readonly Token[]): string | undefined {
  const after = tokens.find((token) => token.index > index)
  return after?.kind === 'positional' && after.index === index + 1 ? after.value : undefined
}

/** Refuses long flags after a single dash: they would be read as a letter and its value. */
function checkDashes(argv: readonly string[], tokens: readonly Token[]): void {
  const first = tokens.find((token) => token.kind === 'positional')
  for (const token of tokens) {
    if (token.kind !== 'option' || (first && token.index > first.index && !FIRST_WORDS.includes(first.value))) continue
    const [word = ''] = (argv[token.index] ?? '').split('=')
    const name = /^-([A-Za-z][\w-]+)$/.exec(word)?.[1]
    if (name === undefined) continue
    const instead = flagOf(name) ? '' : insteadOf(name, argv[token.index + 1])
    if (instead === undefined) continue
    const next = instead === '' ? `: write -${word}` : `. -${word}${instead}`
    throw new UsageError(`${word} has one dash, but a flag of more than one letter needs two${next}`)
  }
}

/** The flags of a command. Throws a UsageError for a flag that it does not take. */
function flagsIn(given: readonly Given[], command: CommandName): Flags {
  const flags: Record<string, string | string[] | true> = {}
  const wrong = (message: string) => new UsageError(message, command)
  const unknown = given.filter(({ name }) => flagOf(name) === undefined)
  if (unknown.length > 0)
    throw wrong(unknown.map(({ rawName, value, next }) => unknownFlag(rawName, value ?? next, command)).join('\n  '))
  for (const { name, value, inlineValue } of given) {
    const flag = flagOf(name) as Flag
    const taken = [...EVERYWHERE, ...rowOf(command).flags]
    if (!taken.includes(name as FlagName)) throw wrong(misplaced(name as FlagName, command))
    if (flag.value === undefined) {
      if (inlineValue) throw wrong(`--${name} has no value: leave out "=${value}"`)
      flags[name] = true
      continue
    }
    if (value === undefined) throw wrong(`--${name} needs a value: --${name} ${flag.value}`)
    if (!inlineValue && /^-./.test(value))
      throw wrong(`--${name} needs a value. If "${value}" is the value, write --${name}=${value}`)
    // Refused here, before its apparent value is.
    flag.read?.((flag.many ? [value] : value) as never)
    if (flag.once && name in flags) throw wrong(`--${name} is given twice: ${flag.once}`)
    if (flag.many) flags[name] = [...((flags[name] as string[] | undefined) ?? []), value]
    else flags[name] = value
  }
  return flags as Flags
}

function unknownFlag(rawName: string, value: string | undefined, command: CommandName): string {
  const name = rawName.replace(/^-+/, '')
  const instead = insteadOf(name, value)
  if (instead !== undefined)
    return `${rawName}${instead.startsWith(':') ? ` is not a flag of mcp-bridge${instead}` : instead}`
  const meant = nearest(name, rowOf(command).flags) ?? nearest(name, Object.keys(FLAGS))
  const option = name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase())
  if (SERVER_KEYS.has(option)) {
    const member = value !== undefined && /^[a-z-]+$/.test(value) ? `"${option}": "${value}"` : `"${option}"`
    return `${rawName} is not a flag: write ${member} into the entry of the server in a configuration file`
  }
  if (OPTIONS.includes(option)) return `${rawName} is not a flag: write "${option}" into a configuration file`
  return `unknown flag ${rawName}${meant === undefined ? '' : `: did you mean --${meant}?`}`
}

function misplaced(flag: FlagName, command: CommandName): string {
  const [one, two, ...more] = commandsWith(flag).map(nameOf)
  const places = two === undefined ? one : more.length > 0 ? `${one}, ${two} and others` : `${one} and ${two}`
  return `--${flag} is not a flag of ${nameOf(command)}: it is one of ${places}`
}

/** A command's name in messages; serving has none. */
function nameOf(command: CommandName): string {
  return command === 'serve' ? 'mcp-bridge itself (serve)' : `"mcp-bridge ${command}"`
}

/** The error for a word that is no command. It never starts a program of that name, which may be any. */
function unknownCommand(word: string, isOfProgram: boolean): UsageError {
  const instead = insteadOfWord(word)
  if (instead !== undefined) return new UsageError(`"${word}" is not a command of mcp-bridge: ${instead}`)
  if (CONFIG_FILE.test(word))
    return new UsageError(`a configuration file needs --config: mcp-bridge --config ${quoted(word)}`)
  if (/\.ya?ml$/.test(word))
    return new UsageError(`${word} is YAML, and mcp-bridge reads JSON and TOML: convert it (yq -o json ${word})`)
  const is = `unknown command "${word}"`
  if (/^\S+\.(?:[cm]?[jt]s|py|rb|php|jar)$/.test(word))
    return new UsageError(`${is}: write -- and the program that runs it before it, as in mcp-bridge -- node server.js`)
  const address = isOfProgram ? '' : addressHint(word, '/mcp')
  if (address !== '') return new UsageError(`"${word}" is not an address${address}`)
  if (word.includes(' '))
    return new UsageError(`${is}: write a program without quotes and after --, as in mcp-bridge -- npx -y some-server`)
  const meant = nearest(word, FIRST_WORDS)
  const start = `before a program write --, as in mcp-bridge -- ${isOfProgram ? quoted(word) : 'npx -y some-server'}`
  return new UsageError(
    meant === undefined
      ? `${is}: ${isOfProgram ? start : `a server is an address (https://…), and ${start}`}`
      : `${is}: did you mean ${meant}?${isOfProgram ? ` To start the program, write -- before it: mcp-bridge -- ${quoted(word)}` : ''}`,
  )
}

function notAsked(word: string, command: CommandName): UsageError {
  const line = command === 'replay' ? 'mcp-bridge replay calls.json' : `mcp-bridge ${command}`
  const hint = CONFIG_FILE.test(word)
    ? `: for a configuration file, write ${line} --config ${quoted(word)}`
    : addressHint(word, '/mcp') || `: before a program write --, as in ${line} -- npx -y some-server`
  return new UsageError(`"${word}" is not an address${hint}`, command)
}

/** The error for `trust` or `auth` without a subcommand, or with an unknown one. */
function incomplete(said: readonly string[]): UsageError {
  const known = said.slice(0, said[1] === 'key' ? 2 : 1)
  const [wrong] = said.slice(known.length)
  const under = commandsUnder(known)
  const next = under.map((name) => name.split(' ').slice(known.length).join(' '))
  if (wrong === undefined)
    return new UsageError(`"mcp-bridge ${known.join(' ')}" needs a command: ${next.join(', ')}`, known.join(' '))
  const meant = nearest(wrong, new Set(next.map((name) => name.split(' ')[0] as string)))
  const hint = meant === undefined ? `there are ${next.join(', ')}` : `did you mean ${[...known, meant].join(' ')}?`
  return new UsageError(`"${[...known, wrong].join(' ')}" is not a command: ${hint}`, known.join(' '))
}

/** The commands to show help for. Throws a UsageError. */
export function commandsFor(words: readonly string[]): readonly CommandName[] {
  if (words.length === 0) return COMMAND_NAMES
  const [first = ''] = words
  const under = commandsUnder(words)
  if (under.length > 0) return under
  if (FIRST_WORDS.includes(first)) throw incomplete(words)
  const meant = nearest(first, FIRST_WORDS)
  throw new UsageError(
    `"${first}" is not a command: ${meant === undefined ? `there are ${FIRST_WORDS.join(', ')}` : `did you mean ${meant}?`}`,
  )
}
