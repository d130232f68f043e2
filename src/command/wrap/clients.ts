/** The clients that `wrap` supports: their files, and the place of servers in these. */
import { posix, win32 } from 'node:path'
import { editableJson } from '../../config/formats/edit.js'
import { editableToml } from '../../config/formats/edit-toml.js'
import { type Machine, type UsualFile, usualFiles } from '../../services/discovery/sources/usual-files.js'
import { CODEX } from './codex.js'
import { type Dialect, GEMINI, MCP_SERVERS, OPENCODE, ZED } from './dialects.js'
import type { Layout } from './plan.js'

export interface WrappableClient {
  /** The name on the command line. */
  id: string
  /** Its name, as in `usualFiles`. */
  program: string
  /** The keys that may lead to its servers. */
  servers(machine: Machine): readonly (readonly string[])[]
  /** Its format of entries, if it differs from most. */
  dialect?: Dialect
  /** The file is TOML instead of JSON. */
  isToml?: true
  /** How to make it reload its file. */
  again: string
}

const IN_MCP_SERVERS = () => [['mcpServers']]

export const CLIENTS: readonly WrappableClient[] = [
  {
    id: 'claude-desktop',
    program: 'Claude Desktop',
    servers: IN_MCP_SERVERS,
    again: 'Quit Claude Desktop and start it',
  },
  {
    id: 'claude-code',
    program: 'Claude Code',
    // Servers of the user, and of the user in this project.
    servers: ({ cwd }) => [
      ['mcpServers'],
      ...[...new Set([cwd, cwd.replaceAll('\\', '/')])].map((folder) => ['projects', folder, 'mcpServers']),
    ],
    again: 'Start a new session of Claude Code',
  },
  { id: 'cursor', program: 'Cursor', servers: IN_MCP_SERVERS, again: 'Restart Cursor' },
  {
    id: 'vscode',
    program: 'VS Code',
    servers: () => [['servers'], ['mcp', 'servers']],
    again: 'Run "MCP: List Servers" in VS Code and restart the servers',
  },
  { id: 'windsurf', program: 'Windsurf', servers: IN_MCP_SERVERS, again: 'Restart Windsurf' },
  {
    id: 'gemini',
    program: 'Gemini CLI',
    servers: IN_MCP_SERVERS,
    dialect: GEMINI,
    again: 'Start Gemini CLI again',
  },
  { id: 'zed', program: 'Zed', servers: () => [['context_servers']], dialect: ZED, again: 'Restart Zed' },
  {
    id: 'opencode',
    program: 'opencode',
    servers: () => [['mcp']],
    dialect: OPENCODE,
    again: 'Start opencode again',
  },
  {
    id: 'codex',
    program: 'Codex',
    servers: () => [['mcp_servers']],
    dialect: CODEX,
    isToml: true,
    again: 'Start Codex again',
  },
]

export function layoutOf({ servers, dialect = MCP_SERVERS, isToml }: WrappableClient, machine: Machine): Layout {
  return { places: servers(machine), dialect, open: isToml ? editableToml : editableJson }
}

/** The files of a client: those of the user, then those of the project in the working directory. */
export function filesOf({ id, program }: WrappableClient, machine: Machine): UsualFile[] {
  const { join } = machine.platform === 'win32' ? win32 : posix
  const usual = usualFiles(machine).filter((file) => file.program === program)
  const ofUser = usual.filter(({ of }) => of === 'user')
  // Discovery skips this file, because it also contains the history of Claude Code.
  if (id === 'claude-code')
    ofUser.push({ program, of: 'user', path: join(machine.env['CLAUDE_CONFIG_DIR'] || machine.home, '.claude.json') })
  return [...ofUser, ...usual.filter(({ of }) => of === 'project')]
}
