/** Help pages of the program and of each command, from the tables of commands and flags and the schema of options. */

import { DOCUMENTS } from '../base/texts/documents.js'
import { optionAt, options, type ReferenceOption } from '../config/reference.js'
import { COMMAND_NAMES, type CommandName, EVERYWHERE, rowOf } from './commands.js'
import { GROUPS } from './flag-groups.js'
import { FLAGS, type Flag, type FlagName, flagOf } from './flags.js'

const WIDTH = 100
const MOST_USED: readonly FlagName[] = ['listen', 'config', 'header']
/** Width of the gap between two columns. */
const GAP = 2
/** Most width of the left column. */
const MOST_LEFT = 36

/** The page of the program: its purpose, its usage, and further help. */
export function shortHelp(): string {
  const lines = COMMAND_NAMES.flatMap((name): [string, string][] => {
    if (!name.startsWith('trust ')) return [[join(name, rowOf(name).usage), firstClause(rowOf(name).about)]]
    return name === 'trust list' ? [['trust <command>', 'manage the servers, keys and publishers that you trust']] : []
  })
  const flags = MOST_USED.map((name): [string, string] => [signature(name), firstSentence(aboutFlag(name))])
  return page([
    ...aboutProgram(),
    '',
    'Start it',
    '  mcp-bridge -- npx -y @modelcontextprotocol/server-everything    a program, for clients over HTTP',
    '  mcp-bridge --listen stdio https://example.com/mcp               a remote server, on stdio',
    '  mcp-bridge --config mcp.json                                    all servers of a file',
    '',
    'Commands',
    ...columns(lines),
    '',
    'Most used flags',
    ...columns(flags),
    '',
    '  mcp-bridge help serve        all flags for serving; the same for each command',
    `  ${DOCUMENTS}configuration.md  files and options`,
  ])
}

/** What the program is, in lines. */
export function aboutProgram(): readonly string[] {
  return [
    'mcp-bridge connects MCP clients and servers of both protocol eras: modern (2026-07-28) and legacy',
    '(2024-11-05 to 2025-11-25). All servers are together at /mcp, each at /<name>/mcp; or on stdio.',
  ]
}

/** The pages of commands; of several, an overview. */
export function helpOf(commands: readonly CommandName[]): string {
  const [only, ...others] = commands
  if (only !== undefined && others.length === 0) return pageOf(only)
  const lines = commands.map((name): [string, string] => [join(name, rowOf(name).usage), rowOf(name).about])
  return page([
    'Commands',
    ...columns(lines),
    '',
    `"mcp-bridge help ${commands.at(0)}" shows the flags of one of them.`,
  ])
}

function pageOf(name: CommandName): string {
  const { usage, about, details, flags, examples } = rowOf(name)
  const grouped = GROUPS.map(([title, group]) => [title, flags.filter((flag) => group.includes(flag))] as const)
  const special = flags.filter((flag) => !grouped.some(([, group]) => group.includes(flag)))
  const parts = [['Flags', special] as const, ...grouped, ['Help', EVERYWHERE] as const]
  return page([
    `mcp-bridge ${join(name === 'serve' ? '[serve]' : name, usage)}${flags.length === 0 ? '' : ' [flags]'}`,
    `  ${about}`,
    ...(details ? ['', ...details] : []),
    '',
    'Examples',
    ...examples.flatMap(([what, line]) => [`  ${what}:`, `    ${line}`]),
    ...parts.flatMap(([title, group]) =>
      group.length === 0
        ? []
        : ['', title, ...columns(group.map((flag) => [signature(flag), textOf(flag), exampleOf(flag)]))],
    ),
  ])
}

let known: readonly ReferenceOption[] | undefined

/** The description of a flag: that of the option it sets, or its own. */
export function aboutFlag(name: FlagName): string {
  const { about, option } = flagOf(name) as Flag
  return about ?? (option === undefined ? '' : knownOption(option).about)
}

/** The option with this path. All of them together take longer than the rest of a page. */
function knownOption(path: string): ReferenceOption {
  known ??= options()
  return optionAt(path, known)
}

/** All that help says of a flag, but for its example. */
export function textOf(name: FlagName): string {
  const { option, many, to } = flagOf(name) as Flag
  const found = option === undefined || to !== undefined ? undefined : knownOption(option)
  return [
    aboutFlag(name),
    ...(found?.values ? [`Values: ${found.values.join(', ')}.`] : []),
    ...(typeof found?.default === 'string' ? [`Default: ${found.default}.`] : []),
    ...(many ? ['May be given several times.'] : []),
  ].join(' ')
}

function exampleOf(name: FlagName): string {
  const { example } = flagOf(name) as Flag
  return example === undefined ? '' : `Example: ${example}`
}

/** A flag as it is written, with the placeholder for its value. */
export function signature(name: FlagName): string {
  const { short, value } = FLAGS[name] as Flag
  return `${short === undefined ? '    ' : `-${short}, `}${join(`--${name}`, value ?? '')}`
}

function join(...words: readonly string[]): string {
  return words.filter((word) => word !== '').join(' ')
}

function firstSentence(text: string): string {
  return text.replace(/(?<=\.) [A-Z"].*$/s, '')
}

export function firstClause(text: string): string {
  return text.replace(/;.*$/s, '')
}

/** Rows of two columns. The second column wraps; a long first column gets its own line. */
function columns(rows: readonly (readonly [left: string, right: string, more?: string])[]): string[] {
  const first = Math.min(MOST_LEFT, Math.max(...rows.map(([left]) => left.length)))
  const indent = ' '.repeat(2 + first + GAP)
  return rows.flatMap(([left, right, more = '']) => {
    const [head = '', ...rest] = wrapped(right, WIDTH - indent.length)
    const lines = [...rest, ...(more === '' ? [] : [more])].map((line) => indent + line)
    if (left.length > first) return [`  ${left}`, indent + head, ...lines]
    return [`  ${left.padEnd(first + GAP)}${head}`, ...lines]
  })
}

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}

function page(lines: readonly string[]): string {
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}
