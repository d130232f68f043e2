/** What ends the program with an error: the exit code, and what docs/troubleshooting.md says about it. */
import type { LogEvent } from '../base/log/events.js'

export const EXIT = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/** Why the program ends with an error. */
export type EndEvent = Extract<
  LogEvent,
  'command_line_invalid' | 'config_invalid' | 'server_unavailable' | 'listen_failed' | 'unexpected_error'
>

interface End {
  code: number
  /** The message of the last line of the log: the same text for all errors with this event. */
  kind: string
  /** The first line for people. As the texts that follow, it is Markdown, with links relative to docs/troubleshooting.md. */
  first: string
  what: string
  next: string
}

export const ENDS: Readonly<Record<EndEvent, End>> = {
  command_line_invalid: {
    code: EXIT.usage,
    kind: 'invalid command line',
    first: '`mcp-bridge: <what is wrong>`, then `Run "mcp-bridge … --help" for help.`',
    what: 'A flag, word or command is wrong or missing. The first line names it, and often what was probably meant.',
    next: 'Correct the command line. `mcp-bridge help <command>` shows all flags of a command.',
  },
  config_invalid: {
    code: EXIT.config,
    kind: 'invalid configuration',
    first: '`mcp-bridge: invalid configuration:`',
    what: 'A file cannot be read, or an option in it, or set by a flag, is invalid. Each line below names the file, line and column, and the option.',
    next: 'Correct what the lines name. `mcp-bridge check --config <file>` shows all mistakes without starting anything.',
  },
  server_unavailable: {
    code: EXIT.failed,
    kind: 'server unavailable',
    first: '`mcp-bridge: <why>`, then the address and what the server said or wrote to stderr',
    what: 'The server cannot be used. The bridge ends because of it only on stdio, with a single server that is a program, and in `probe` and `login`.',
    next: 'See [A server cannot be used](#a-server-cannot-be-used). `mcp-bridge probe <server>` shows which step fails.',
  },
  listen_failed: {
    code: EXIT.failed,
    kind: 'cannot listen',
    first: '`mcp-bridge: port <port> is in use`, or `cannot listen on …`',
    what: 'Another program listens on the port or socket, this user may not, or this machine does not have the address.',
    next: 'Choose another address with `--listen`, or with `--admin` if it is that one, or end the other program.',
  },
  unexpected_error: {
    code: EXIT.failed,
    kind: 'unexpected error',
    first: '`mcp-bridge: Error: …` with lines that begin with `at`',
    what: 'An error in the bridge.',
    next: 'Report it with these lines, and with what `--log-level debug` shows. Remove secrets first.',
  },
}
