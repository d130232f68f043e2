/** Where programs keep the servers that they use, on each platform. Knows only paths, and reads nothing. */
import { posix, win32 } from 'node:path'

/** What determines where these files are. */
export interface Machine {
  platform: string
  home: string
  cwd: string
  /** On Windows APPDATA and LOCALAPPDATA count, on Linux XDG_CONFIG_HOME. */
  env: Readonly<Record<string, string | undefined>>
}

/** The configuration file of a program. */
export interface UsualFile {
  program: string
  /** It is part of the project in the working directory, or for all projects of the user. */
  of: 'project' | 'user'
  path: string
}

/** The folder in which Claude Desktop is, if Windows has installed it as a package (MSIX). */
const CLAUDE_PACKAGE = ['Packages', 'Claude_pzs8sxrjxfjjc', 'LocalCache', 'Roaming']

/** The usual configuration files. Those of the project come before those of the user. */
export function usualFiles({ platform, home, cwd, env }: Machine): UsualFile[] {
  const windows = platform === 'win32'
  const { join } = windows ? win32 : posix
  const data = windows
    ? env['APPDATA'] || join(home, 'AppData', 'Roaming')
    : platform === 'darwin'
      ? join(home, 'Library', 'Application Support')
      : env['XDG_CONFIG_HOME'] || join(home, '.config')
  const config = env['XDG_CONFIG_HOME'] || join(home, '.config')
  const packaged = windows ? join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), ...CLAUDE_PACKAGE) : undefined
  const desktop = (folder: string) => join(folder, 'Claude', 'claude_desktop_config.json')
  const project = (program: string, ...names: readonly string[]): UsualFile => ({
    program,
    of: 'project',
    path: join(cwd, ...names),
  })
  const user = (program: string, path: string): UsualFile => ({ program, of: 'user', path })
  return [
    project('Claude Code', '.mcp.json'),
    project('Cursor', '.cursor', 'mcp.json'),
    project('VS Code', '.vscode', 'mcp.json'),
    project('Gemini CLI', '.gemini', 'settings.json'),
    project('Codex', '.codex', 'config.toml'),
    project('opencode', 'opencode.jsonc'),
    project('opencode', 'opencode.json'),
    user('Cursor', join(home, '.cursor', 'mcp.json')),
    user('Windsurf', join(home, '.codeium', 'windsurf', 'mcp_config.json')),
    user('Gemini CLI', join(home, '.gemini', 'settings.json')),
    user('Codex', join(env['CODEX_HOME'] || join(home, '.codex'), 'config.toml')),
    user('opencode', join(config, 'opencode', 'opencode.jsonc')),
    user('opencode', join(config, 'opencode', 'opencode.json')),
    user(
      'Zed',
      windows
        ? join(data, 'Zed', 'settings.json')
        : join(platform === 'linux' ? config : join(home, '.config'), 'zed', 'settings.json'),
    ),
    ...(packaged === undefined ? [] : [user('Claude Desktop', desktop(packaged))]),
    user('Claude Desktop', desktop(data)),
    user('VS Code', join(data, 'Code', 'User', 'mcp.json')),
  ]
}
