/** What `mcp-bridge probe` does and prints. */
import { Bridge } from '../bridge/bridge.js'
import { describe, inspect } from '../bridge/inspect.js'
import type { Settings } from '../config/settings.js'
import { createLog } from '../log.js'
import { Fault, needsSignIn } from '../protocol/fault.js'
import type { Program } from './program.js'
import { signInFor, targetOf } from './sign-in.js'

/** Milliseconds after which it says what it is waiting for. */
const SILENCE = 2_000

/** Connects to the one server of the settings, and prints what it is. Rejects with a Fault. */
export async function probe(settings: Settings, json: boolean, program: Program): Promise<void> {
  const { version, env, output, errors } = program
  errors.probing = true
  const { level } = settings.log
  const log = createLog({ ...settings.log, level: level === 'info' ? 'error' : level }, output)
  const bridge = new Bridge(settings, { log, version, env, signIn: signInFor(program, settings) })
  const { server } = bridge
  if (!server.isProgram) errors.target = server.target
  if (output.terminal && !json) output.err(`Asking ${server.target} …\n`)
  const { patience } = server
  const limits = `up to ${patience.probe / 1000} s for server/discover, then up to ${patience.initialize / 1000} s for initialize`
  const waiting = setTimeout(() => output.err(`No answer yet. mcp-bridge waits ${limits}.\n`), SILENCE).unref()
  try {
    const inspection = await inspect(server, { tools: 'attempted' }).catch(async (error: unknown) => {
      const { accounts } = targetOf(bridge)
      if (!accounts || !needsSignIn(error)) throw error
      const { describeSignIn } = await import('./auth.js')
      const described = await describeSignIn(accounts, error, server.target, json).catch((failure: unknown) => {
        const { fault, message } = Fault.from(failure)
        throw new Fault(fault, message, { cause: error.cause })
      })
      output.out(`${described}\n`)
      return undefined
    })
    if (!inspection) return
    output.out(`${json ? JSON.stringify(inspection, null, 2) : describe(server.target, inspection)}\n`)
  } finally {
    clearTimeout(waiting)
    await bridge.close()
  }
}
