/** The manual page (roff) of the program, made of the tables of commands and flags, as its help is. The build writes it. */
import { DOCUMENTS } from '../src/base/texts/documents.js'
import { COMMAND_NAMES, type CommandName, EVERYWHERE, rowOf } from '../src/command/commands.js'
import { FLAGS, type FlagName } from '../src/command/flags.js'
import { aboutProgram, firstClause, signature, textOf } from '../src/command/help.js'

export function manPage(version: string): string {
  const [first = '', ...more] = aboutProgram()
  return `${[
    `.TH MCP-BRIDGE 1 "" "mcp-bridge ${version}" "User Commands"`,
    '.SH NAME',
    'mcp-bridge \\- connects MCP clients and servers of both protocol eras',
    '.SH SYNOPSIS',
    ...COMMAND_NAMES.flatMap((name, at) => [...(at === 0 ? [] : ['.br']), synopsis(name)]),
    '.SH DESCRIPTION',
    text(first),
    ...more.map(text),
    '.SH COMMANDS',
    ...COMMAND_NAMES.flatMap(command),
    '.SH OPTIONS',
    ...(Object.keys(FLAGS) as FlagName[]).flatMap(option),
    '.SH "SEE ALSO"',
    text(`${DOCUMENTS}README.md`),
  ].join('\n')}\n`
}

function synopsis(name: CommandName): string {
  return `.B mcp-bridge${name === 'serve' ? '' : ` ${name}`}\n${text([rowOf(name).usage, '[flags]'].filter(Boolean).join(' '))}`
}

function command(name: CommandName): string[] {
  const { about, details = [], examples, flags } = rowOf(name)
  return [
    `.SS ${name}`,
    `${text(`${capital(firstClause(about))}.`)}`,
    ...(details.length === 0 ? [] : ['.PP', '.nf', ...details.map(text), '.fi']),
    ...(flags.length === 0 ? [] : ['.PP', text(`Flags: ${flags.map((flag) => `--${flag}`).join(', ')}.`)]),
    ...examples.flatMap(([what, line]) => ['.PP', text(`${what}:`), '.PP', '.nf', '.RS', text(line), '.RE', '.fi']),
  ]
}

function option(name: FlagName): string[] {
  const commands = EVERYWHERE.includes(name) ? [] : COMMAND_NAMES.filter((one) => rowOf(one).flags.includes(name))
  return [
    '.TP',
    `.B ${text(signature(name).trim())}`,
    text([textOf(name), commands.length > 0 && `Of ${commands.join(', ')}.`].filter(Boolean).join(' ')),
  ]
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** A line as roff prints it to the letter. */
function text(line: string): string {
  const escaped = line.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replaceAll('"', '\\(dq')
  // A line that begins with a dot or an apostrophe is a request.
  return escaped.startsWith('.') ? `\\&${escaped}` : escaped
}
