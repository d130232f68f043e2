/**
 * A process that outlives the bridge by a moment: where the bridge is killed and cannot end its programs, it does. It is a
 * shell of about a megabyte, started with the first program, that waits for its pipe from the bridge to close. Where
 * there is no shell, as in an image with nothing but Node.js, there is no watchdog.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import process from 'node:process'

/**
 * Takes a line for each process group that begins (`+ 123`) or is gone (`- 123`). At the end of its input it ends those
 * that are left: SIGTERM, and a second later SIGKILL.
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

/** Has a process group end with the bridge, however that ends. */
export function watch(group: number): void {
  groups.add(group)
  if (watchdog) watchdog.stdin?.write(`+ ${group}\n`)
  else if (!unavailable) start()
}

/** The process group is gone: another may have its number from now on. */
export function unwatch(group: number): void {
  if (groups.delete(group)) watchdog?.stdin?.write(`- ${group}\n`)
}

function start(): void {
  const { PATH = '/usr/bin:/bin' } = process.env
  // In a session of its own: a Ctrl-C at the terminal is for the bridge.
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
  // Somebody has ended it. The next program has another one started, which is told of all.
  child.once('exit', () => {
    watchdog = undefined
  })
  child.stdin?.on('error', () => {})
  child.stdin?.write([...groups].map((group) => `+ ${group}\n`).join(''))
  // It must not keep the bridge from ending.
  child.unref()
  if (child.stdin && 'unref' in child.stdin) (child.stdin as { unref(): void }).unref()
}
