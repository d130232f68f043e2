/**
 * Starts a small process that ends the bridge's programs if the bridge is killed: a shell (about a megabyte) that waits
 * until its pipe from the bridge closes. It starts with the first program. Without a shell, as in an image with only
 * Node.js, there is no watchdog.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import process from 'node:process'

/**
 * Reads a line for each process group that has started (`+ 123`) or ended (`- 123`). At the end of its input it ends
 * the remaining groups: SIGTERM, and a second later SIGKILL.
 */
const SCRIPT = `
trap '' HUP INT TERM
set --
while read -r what group; do
  for other in "$@"; do
    shift
    [ "$other" = "$group" ] || set -- "$@" "$other"
  done
  [ "$what" = + ] && set -- "$@" "$group"
done
[ $# -gt 0 ] || exit 0
for group in "$@"; do kill -s TERM -- "-$group"; done
sleep 1
for group in "$@"; do kill -s KILL -- "-$group"; done
`

const groups = new Set<number>()
let watchdog: ChildProcess | undefined
let unavailable = process.platform === 'win32'

/** Makes a process group end with the bridge, even if the bridge is killed. */
export function watch(group: number): void {
  groups.add(group)
  if (watchdog) watchdog.stdin?.write(`+ ${group}\n`)
  else if (!unavailable) start()
}

/** Notes that a process group has ended. Its number may be reused from now on. */
export function unwatch(group: number): void {
  if (groups.delete(group)) watchdog?.stdin?.write(`- ${group}\n`)
}

function start(): void {
  const { PATH = '/usr/bin:/bin' } = process.env
  // Detached: in a session of its own, so that Ctrl-C at the terminal does not end it.
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'mcp-bridge-watchdog'], {
    cwd: '/',
    env: { PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog = child
  child.once('error', () => {
    unavailable = true
    watchdog = undefined
  })
  // If the watchdog was killed, the next program starts another one, which gets all groups.
  child.once('exit', () => {
    watchdog = undefined
  })
  child.stdin?.on('error', () => {})
  child.stdin?.write([...groups].map((group) => `+ ${group}\n`).join(''))
  // It must not keep the event loop of the bridge alive.
  child.unref()
  if (child.stdin && 'unref' in child.stdin) (child.stdin as { unref(): void }).unref()
}
