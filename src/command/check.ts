/** What `mcp-bridge check` prints. */

import { printableLines } from '../base/texts/printable.js'
import { ownCommand } from '../base/texts/shell.js'
import type { Issue } from '../config/settings.js'
import type { Checked, CheckedGroup } from './settings.js'

/** What `check` prints, after others have been asked that have to be. */
export async function checkNow(checked: Checked & { file: string; json: boolean }): Promise<string> {
  const warnings = [...checked.warnings, ...((await checked.ask?.()) ?? [])]
  const result = { ...checked, warnings }
  return checked.json ? `${printableLines(checkedAsJson(result))}\n` : checkedInWords(result)
}

/** What `check --json` prints of a file with mistakes. */
export function invalidAsJson({ file, issues }: { file: string; issues: readonly Issue[] }): string {
  return `${printableLines({ valid: false, file, issues })}\n`
}

/** The result for programs. */
function checkedAsJson(checked: Checked & { file: string }): object {
  const { file, servers, groups, format, notes, warnings, chosen } = checked
  return {
    valid: true,
    file,
    ...(format !== undefined && { format }),
    servers,
    groups: groups.map(({ name, path, members, bareNames }) => ({ name, path, members, prefixed: !bareNames })),
    notes,
    warnings,
    chosen: Object.fromEntries(chosen),
  }
}

export function checkedInWords(checked: Checked & { file: string }): string {
  const { file, servers, groups, format, notes, warnings, chosen } = checked
  const count = servers.length === 1 ? '1 server' : `${servers.length} servers`
  const whose = format === undefined ? '' : `, in the format of ${format}`
  return [
    `${file} is valid: ${count}${whose}.`,
    ...section('Served together:', groups.map(groupInWords)),
    // No server is asked here, so the size of the lists is not known.
    ...(groups.some(({ members }) => members.length > 1)
      ? [
          `What clients see of them, and how many tokens of a model that takes: ${ownCommand('probe', '--config', file)}`,
        ]
      : []),
    ...section('Left out or changed:', notes.map(inLine)),
    ...section('Probably mistakes:', warnings.map(inLine)),
    ...section(
      `Clients see only a part of these servers (${ownCommand('probe', [...chosen.keys()][0] ?? '', '--config', file)} lists it):`,
      [...chosen].map(([name, words]) => `${name}: ${words}`),
    ),
    '',
  ].join('\n')
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)]
}

/** Names of tools in a group, as far as known without the servers. */
function groupInWords({ name, path, members, bareNames }: CheckedGroup): string {
  const where = path === undefined ? name : `${name} at ${path}`
  const servers = members.map(({ server, prefix }) =>
    bareNames ? server : prefix === server ? `${prefix}__…` : `${prefix}__… (${server})`,
  )
  const names = bareNames && members.length > 1 ? ' without prefixes; of equal names, the first one counts' : ''
  return `${where}: ${servers.join(', ')}${names}`
}

/** An issue in one line, with its place. */
export function inLine({ at, path, message }: Issue): string {
  return [at, path, message].filter((part) => part !== undefined && part !== '').join(' ')
}
