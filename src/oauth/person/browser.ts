/** Opens an address in the browser of the person at this machine. No shell is involved. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { parseAddress } from '../../net/address.js'
import { bare } from '../../net/connect.js'
import { isLoopback } from '../../net/guard.js'

export interface BrowserOptions {
  /** A command and its arguments, to which the address is added (or put in the place of `%s`); `none` for no browser. */
  command?: readonly string[] | 'none' | undefined
  env: Readonly<Record<string, string | undefined>>
  platform: string
  /** Whether a file is there; the system's by default. */
  exists?: ((path: string) => boolean) | undefined
}

/** Opens an address. Resolves to whether a browser was started, which may not be known to have worked. */
export type OpenBrowser = (address: string) => Promise<boolean>

/** Characters that an address may have by itself. Others are encoded, in case somebody further on uses a shell. */
const HARMLESS = /[^\w\-.~:/?#[\]@!&*+,=%]/g
/** Variables that a browser needs to find the person's desktop. Others may be secrets of the bridge. */
const DESKTOP = new RegExp(
  '^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|TERM|TMPDIR|TEMP|TMP|DISPLAY|XAUTHORITY|DESKTOP_SESSION|SESSION_MANAGER|' +
    'SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMDATA|PROGRAMFILES.*|HOMEDRIVE|HOMEPATH|' +
    'VSCODE_IPC_HOOK_CLI|WSLENV|(?:LC|XDG|DBUS|WAYLAND|GTK|QT|KDE|GNOME|MOZ|SNAP|FLATPAK|WSL)_[A-Z0-9_]*)$',
  'i',
)
/** Milliseconds after which a browser that is still there counts as started. */
const STARTED = 1_500

/** The browser that can be used here; undefined where a person has to be shown the address instead. */
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
  // Whoever works here over the network or in a container has a browser elsewhere.
  if (env['SSH_CONNECTION'] || env['SSH_TTY'] || exists('/.dockerenv') || exists('/run/.containerenv')) return undefined
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  if (env['WSL_DISTRO_NAME']) return ['wslview']
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : undefined
}

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

/** An address as it is given to a browser: https, or http on this machine. Throws where it is another. */
export function browserAddress(address: string): string {
  const { href, protocol, hostname } = parseAddress(address)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(bare(hostname))))
    throw new TypeError('A browser is sent to https:// addresses only')
  return href.replace(HARMLESS, (character) => encodeURIComponent(character).replace(/['()]/g, hex))
}

const hex = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

function desktopOf(env: BrowserOptions['env']): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => DESKTOP.test(name)))
}

/** Programs that open browsers end at once; those that stay are browsers. */
function start(file: string, args: readonly string[], env: NodeJS.ProcessEnv, platform: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { env, stdio: 'ignore', detached: true, shell: false, windowsHide: true })
    child.unref()
    const timer = setTimeout(resolve, STARTED, true)
    const end = (started: boolean) => {
      clearTimeout(timer)
      resolve(started)
    }
    child.once('error', () => end(false))
    // What Windows gives back says nothing.
    child.once('exit', (code) => end(code === 0 || platform === 'win32'))
  })
}
