/** Opens an address in the browser of the person at this machine, without a shell. */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { parseAddress } from '../../../base/net/address.js'
import { isLoopback } from '../../../base/net/guard.js'
import { withoutBrackets } from '../../../base/texts/parse-url.js'
import { within } from '../../../base/time/time.js'

/** How to find a browser. */
export interface BrowserOptions {
  /** A command and its arguments. The address replaces `%s`, or is appended. `none` for no browser. */
  command?: readonly string[] | 'none' | undefined
  env: Readonly<Record<string, string | undefined>>
  platform: string
  /** Whether a file exists; by default asks the file system. */
  exists?: ((path: string) => boolean) | undefined
}

/** Opens an address. Resolves to whether a browser was probably started. */
export type OpenBrowser = (address: string) => Promise<boolean>

/** All other characters are encoded, in case the opened program passes the address to a shell. */
const HARMLESS = /[^\w\-.~:/?#[\]@!&*+,=%]/g
/** Variables that a browser needs to find the desktop. Others are removed: they may be secrets. */
const DESKTOP = new RegExp(
  '^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|TERM|TMPDIR|TEMP|TMP|DISPLAY|XAUTHORITY|DESKTOP_SESSION|SESSION_MANAGER|' +
    'SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMDATA|PROGRAMFILES.*|HOMEDRIVE|HOMEPATH|' +
    'VSCODE_IPC_HOOK_CLI|WSLENV|(?:LC|XDG|DBUS|WAYLAND|GTK|QT|KDE|GNOME|MOZ|SNAP|FLATPAK|WSL)_[A-Z0-9_]*)$',
  'i',
)
/** Milliseconds after which a running process counts as a started browser. */
const STARTED = 1_500

/** The command for the browser; undefined if the address must be shown instead. */
export function browserCommand({
  command,
  env,
  platform,
  exists = existsSync,
}: BrowserOptions): readonly string[] | undefined {
  if (command === 'none') return undefined
  if (command) return command
  const own = env['BROWSER']?.split(/:(?!\\)/)[0]?.trim()
  if (own === 'none') return undefined
  if (own) return exists(own) ? [own] : own.split(/\s+/)
  // Over SSH and in containers the person's browser is on another machine.
  if (env['SSH_CONNECTION'] || env['SSH_TTY'] || exists('/.dockerenv') || exists('/run/.containerenv')) return undefined
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  if (env['WSL_DISTRO_NAME']) return ['wslview']
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : undefined
}

/** Opens addresses as `options` say. */
export function browser(options: BrowserOptions): OpenBrowser {
  return async (address) => {
    const command = browserCommand(options)
    if (!command) return false
    const safe = browserAddress(address)
    const [file = '', ...given] = command
    const args = given.some((one) => one.includes('%s'))
      ? given.map((one) => one.replaceAll('%s', safe))
      : [...given, safe]
    return start(file, args, desktopOf(options.env), options.platform)
  }
}

/** An address that may be passed to a browser: https, or http on this machine. Throws otherwise. */
export function browserAddress(address: string): string {
  const { href, protocol, hostname } = parseAddress(address)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(withoutBrackets(hostname))))
    throw new TypeError('Only https:// addresses are opened in a browser')
  return href.replace(HARMLESS, (character) => encodeURIComponent(character).replace(/['()]/g, hex))
}

const hex = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

function desktopOf(env: BrowserOptions['env']): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => DESKTOP.test(name)))
}

/** Helper programs exit at once; a process that stays is the browser. */
function start(file: string, args: readonly string[], env: NodeJS.ProcessEnv, platform: string): Promise<boolean> {
  const child = spawn(file, args, { env, stdio: 'ignore', detached: true, shell: false, windowsHide: true })
  child.unref()
  const ended = new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false))
    // On Windows the exit code says nothing.
    child.once('exit', (code) => resolve(code === 0 || platform === 'win32'))
  })
  return within(ended, STARTED, () => true)
}
