/** Turns the command line of `mcp-bridge trust` into an action. */
import type { ConfigSources, Settings } from '../config/settings.js'
import type { Arguments } from './arguments.js'
import { type CommandName, rowOf } from './commands.js'
import { readConfig } from './config-file.js'
import { configured } from './settings.js'
import { UsageError } from './usage-error.js'

/** An action on trust. The settings name the places to search for servers. */
export type TrustAction =
  | { do: 'list'; json: boolean }
  | { do: 'approve'; server: string; settings: Settings; tools: readonly string[]; days: number }
  | { do: 'pin'; server: string; settings: Settings; backups: readonly string[] }
  | { do: 'revoke'; server: string }
  | { do: 'unpin'; server: string }
  | { do: 'key add'; publisher: string; file: string }
  | { do: 'key remove'; publisher: string; id: string }

export type TrustCommand = Extract<CommandName, `trust ${string}`>

/** What a `trust` command does, and the trust store. Throws a UsageError. */
export function parseTrust(
  { words, flags }: Arguments,
  command: TrustCommand,
  sources: ConfigSources,
): { action: TrustAction; trustStore: string | undefined } {
  const file = flags.config === undefined ? {} : readConfig(flags.config, sources.read).options
  const inFile = file['trustStore']
  const trustStore = flags['trust-store'] ?? (typeof inFile === 'string' ? inFile : undefined)
  return { action: trustAction(), trustStore }

  function trustAction(): TrustAction {
    const { usage, examples } = rowOf(command)
    const [first, second] = words
    if (command === 'trust list') return { do: 'list', json: flags.json ?? false }
    if (first === undefined || (usage.includes(' ') && second === undefined))
      throw new UsageError(`${command} needs ${usage}, as in ${examples[0]?.[1]}`, command)
    switch (command) {
      case 'trust approve': {
        const tools = flags.tools === undefined ? ['*'] : [...flags.tools, ...words.slice(1)]
        return { do: 'approve', server: first, settings: found(first), tools, days: daysIn(flags.for ?? '30d') }
      }
      case 'trust pin':
        return { do: 'pin', server: first, settings: found(first), backups: flags.backup ?? [] }
      case 'trust revoke':
        return { do: 'revoke', server: first }
      case 'trust unpin':
        return { do: 'unpin', server: first }
      case 'trust key add':
        return { do: 'key add', publisher: first, file: second as string }
      case 'trust key remove':
        return { do: 'key remove', publisher: first, id: second as string }
    }
  }

  /** Settings to search for a server. */
  function found(server: string): Settings {
    const { discover } = file
    const places = Array.isArray(discover) && discover.length > 0 ? (discover as string[]) : [server]
    return configured({ ...flags, discover: flags.discover ?? places }, sources).settings
  }
}

/** Converts 12h, 30d and 8w to days. */
function daysIn(text: string): number {
  const [, number, unit] = /^(\d{1,4})([hdw])$/.exec(text) ?? []
  const days = Number(number) * ({ h: 1 / 24, d: 1, w: 7 }[unit ?? ''] ?? Number.NaN)
  if (!(days > 0 && days <= 366))
    throw new UsageError(`--for needs a time like 12h, 30d or 8w, up to a year, not "${text}"`, 'trust approve')
  return days
}
