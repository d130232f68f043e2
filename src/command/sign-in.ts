/** Signs in to servers and out of them, with the process's browser, terminal and token store. */
import { createInterface } from 'node:readline'
import { Bridge } from '../app/bridge.js'
import type { Mount } from '../app/mount.js'
import { servicesFor } from '../app/services.js'
import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { printable } from '../base/texts/printable.js'
import { browserOf, type Settings } from '../config/settings.js'
import { type SignInParts, signInParts } from '../services/oauth/sign-in-parts.js'
import type { SignInTarget } from './auth.js'
import { flagsOf, loginWords } from './own-command.js'
import { type Program, quietLog } from './program.js'

/** Signs in to the one server of the settings. Rejects with a Fault. */
export async function login(settings: Settings, program: Program): Promise<void> {
  const { runLogin } = await import('./auth.js')
  const stopping = new AbortController()
  program.onSignal(() => stopping.abort(new Fault('signInRefused', 'Signing in was interrupted')))
  const hint = 'If that browser is on another machine, paste here the address of the page where it ends:\n'
  const signIn = signInFor(program, settings, { hint })
  const { version, env, stdin, output } = program
  const services = await servicesFor(settings)
  const bridge = new Bridge(settings, { services, log: quietLog(program), version, env, signIn })
  const lines = createInterface({ input: stdin })
  try {
    await runLogin(targetOf(bridge), output, lines, stopping.signal)
  } finally {
    lines.close()
    stdin.destroy()
    await bridge.close(true)
  }
}

/** Signs out of a server, or of all servers of a token store. Resolves to whether there were any tokens. */
export async function logout(
  settings: Settings | undefined,
  store: string | undefined,
  program: Program,
): Promise<boolean> {
  const { runLogout } = await import('./auth.js')
  const signIn = signInFor(program, settings, { store })
  const { version, env, output } = program
  const services = settings && (await servicesFor(settings))
  const bridge = services && new Bridge(settings, { services, log: quietLog(program), version, env, signIn })
  try {
    return await runLogout(bridge && targetOf(bridge), signIn.store, output)
  } finally {
    await bridge?.close()
  }
}

/** The server of a command. */
export function targetOf(bridge: Bridge): SignInTarget {
  const [mount] = bridge.mounts.values()
  const { name, accounts, server } = mount as Mount
  return { name, accounts, ask: () => server.warmUp() }
}

/** The program's parts of a sign-in. `store` overrides the settings. */
export function signInFor(
  program: Program,
  settings: Settings | undefined,
  { store, log = quietLog(program), hint = '' }: { store?: string | undefined; log?: Log; hint?: string } = {},
): SignInParts {
  const { config } = flagsOf(program)
  return {
    ...signInParts({
      folder: store ?? settings?.oauth.store,
      browser: settings && browserOf(settings),
      env: program.env,
      platform: program.platform,
      uid: program.uid,
      // Others may read stored logs, so the address must not be in them.
      show: (address, code) => {
        const { readable } = program.errors
        if (!readable) return false
        const compared = code === undefined ? undefined : printable(code, 100)
        program.output.err(
          compared === undefined
            ? `Open this address in a browser to sign in:\n\n  ${address}\n\n${hint}`
            : `Open this address in a browser of any device to sign in:\n\n  ${address}\n\nThe code is ${compared}. Waiting …\n`,
        )
        return true
      },
      onDegraded: (why) =>
        log.warn({ event: 'tokens_not_stored', why }, 'cannot store tokens; they are lost when the process ends'),
    }),
    // What a search has found is not in the file.
    loginName: (name, url) => {
      const isFound = settings !== undefined && settings.discover.length > 0 && !(name in settings.mcpServers)
      return loginWords(program, name, url, config !== undefined && !isFound)
    },
  }
}
