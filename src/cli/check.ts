/** What `mcp-bridge check` prints. */
import type { Issue } from '../config/settings.js'
import type { Checked } from './settings.js'

export function checkedInWords({ file, servers, format, notes, warnings }: Checked & { file: string }): string {
  const count = servers.length === 1 ? '1 server' : `${servers.length} servers`
  const whose = format === undefined ? '' : `, in the format of ${format}`
  return [
    `${file} is valid: ${count}${whose}.`,
    ...section('Left out or changed:', notes),
    ...section('Probably mistakes:', warnings),
    '',
  ].join('\n')
}

function section(title: string, issues: readonly Issue[]): string[] {
  return issues.length === 0 ? [] : [title, ...issues.map((issue) => `  ${inLine(issue)}`)]
}

/** An issue in one line, with where it stands. */
export function inLine({ at, path, message }: Issue): string {
  return [at, path, message].filter((part) => part !== undefined && part !== '').join(' ')
}
