/** How the program of a server is started. */
import type { StdioSettings } from '../config/schema/server.js'
import type { ProgramStart } from '../servers/transport/stdio/cannot-start.js'

/** The variables that every program inherits from the bridge. */
const INHERITED = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'USER',
  'LANG',
  'TMPDIR',
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
  // How programs that download, such as npx, reach the network.
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'https_proxy',
  'http_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** The command line and the complete environment of a program, by the environment of the bridge. */
export function programStart(
  { command, args, cwd, passEnvironment, env: own }: StdioSettings,
  env: Readonly<Record<string, string | undefined>>,
): ProgramStart {
  const names = passEnvironment ? Object.keys(env) : INHERITED
  const inherited = Object.fromEntries(names.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]])))
  return { command, args, cwd, env: { ...inherited, ...own } }
}
