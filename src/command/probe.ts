/** Runs `mcp-bridge probe`. */
import { Bridge } from '../app/bridge.js'
import { servicesFor } from '../app/services.js'
import { Fault, needsSignIn } from '../base/fault/fault.js'
import { createLog } from '../base/log/log.js'
import { printable, printableLines } from '../base/texts/printable.js'
import { groupsOf, type Settings } from '../config/settings.js'
import { describeGroup, groupInWords } from '../middle/describe/group.js'
import { type DescribeOptions, describeServer, serverInWords } from '../middle/describe/server.js'
import { type OperatorAdvice, whyInLine } from '../servers/advice.js'
import type { UpstreamServer } from '../servers/server.js'
import { failureFields, failureLines } from './errors.js'
import type { Program } from './program.js'
import { signInFor, targetOf } from './sign-in.js'

/** Milliseconds before it prints what it is waiting for. */
const SILENCE = 2_000
/** Most characters of the reason why a server is unavailable. */
const ERROR = 1_000

/**
 * Connects to the servers of the settings, and describes them and their groups. Resolves to whether all were reachable.
 * Rejects with a Fault if the only server was not.
 */
export async function probe(settings: Settings, json: boolean, program: Program): Promise<boolean> {
  const bridge = await probingBridge(settings, program)
  if (bridge.mounts.size !== 1) return probeAll(bridge, settings, json, program)
  await probeOne(bridge, settings, json, program)
  return true
}

/** A bridge that does not listen, for a command that asks its servers. Unless the log is set to more, it has only errors. */
export async function probingBridge(settings: Settings, program: Program): Promise<Bridge> {
  const { version, env, output, errors } = program
  errors.probing = true
  const { level } = settings.log
  const log = createLog({ ...settings.log, level: level === 'info' ? 'error' : level }, output)
  const services = await servicesFor(settings)
  return new Bridge(settings, { services, log, version, env, signIn: signInFor(program, settings) })
}

async function probeOne(bridge: Bridge, settings: Settings, json: boolean, { output, errors }: Program): Promise<void> {
  const { server } = bridge
  const [name = ''] = Object.keys(settings.mcpServers)
  const choice = choiceOf(settings, name)
  if (!server.isProgram) errors.target = server.target
  if (output.terminal && !json) output.err(`Asking ${server.target} …\n`)
  const { patience } = server
  const { probe: toProbe, initialize, start } = patience
  const toStart =
    start === undefined
      ? ''
      : `; while the program writes or downloads, up to ${start / 1000} s from its start (timeouts.probe, timeouts.initialize, timeouts.start)`
  const limits = `up to ${toProbe / 1000} s for server/discover, then up to ${initialize / 1000} s for initialize${toStart}`
  const waiting = setTimeout(() => output.err(`No answer yet. mcp-bridge waits ${limits}.\n`), SILENCE).unref()
  try {
    const inspection = await describeServer(server, { tools: 'attempted', choice, name }).catch(
      async (error: unknown) => {
        const { accounts } = targetOf(bridge)
        if (!accounts || !needsSignIn(error)) throw error
        const { describeSignIn } = await import('./auth.js')
        const described = await describeSignIn(accounts, error, server.target, json).catch((failure: unknown) => {
          const { fault, message } = Fault.from(failure)
          throw new Fault(fault, message, { cause: error.cause })
        })
        output.out(`${described}\n`)
        return undefined
      },
    )
    if (!inspection) return
    output.out(`${json ? printableLines(inspection) : serverInWords(server.target, inspection)}\n`)
  } finally {
    clearTimeout(waiting)
    await bridge.close()
  }
}

/** What is chosen of a server, and whether clients of a group get its tools with portable schemas. */
function choiceOf(settings: Settings, name: string): NonNullable<DescribeOptions['choice']> {
  const choice = settings.mcpServers[name]
  if (choice?.schemas) return choice
  const groups = [...groupsOf(settings).values()].filter(({ members }) => members.some(({ server }) => server === name))
  const schemas = groups.find((group) => group.schemas)?.schemas
  // Names are those of the group, with its prefix.
  return { ...choice, ...(schemas && { schemas, keepsNames: true }) }
}

/** Prints each server when it answers, and then the groups, which have no answers left to wait for. */
async function probeAll(bridge: Bridge, settings: Settings, json: boolean, { output }: Program): Promise<boolean> {
  try {
    const servers = await Promise.all(
      [...bridge.mounts].map(async ([name, { server, accounts }]) => {
        try {
          return [
            name,
            server,
            await describeServer(server, { tools: 'attempted', choice: choiceOf(settings, name), name }),
          ] as const
        } catch (error) {
          const isLogin = accounts && !accounts.settings.apiKey && needsSignIn(error)
          const login = isLogin ? `mcp-bridge login ${accounts.loginName}` : undefined
          return [name, server, failed(Fault.from(error), { server, login })] as const
        }
      }),
    )
    const groups = await Promise.all(
      [...bridge.groups].map(async ([name, group]) => {
        try {
          const described = await describeGroup(group)
          const unavailable = described.unavailable.map(({ server, message }) => {
            const down = bridge.mounts.get(server)?.server.down
            return { server, message: down ? whyInLine(down) : message }
          })
          return [name, { ...described, unavailable }] as const
        } catch (error) {
          return [name, failed(Fault.from(error))] as const
        }
      }),
    )
    if (json) {
      const shown = (found: object) => ('lines' in found ? { ...found, lines: undefined } : found)
      const described = {
        servers: Object.fromEntries(servers.map(([name, , found]) => [name, shown(found)])),
        groups: Object.fromEntries(groups.map(([name, found]) => [name, shown(found)])),
      }
      output.out(`${printableLines(described)}\n`)
    } else {
      const parts = [
        ...servers.map(([name, server, found]) =>
          'error' in found ? `${name}\n${failedInWords(found)}` : `${name}: ${serverInWords(server.target, found)}`,
        ),
        ...groups.map(([name, found]) =>
          'error' in found ? `group ${name}\n${failedInWords(found)}` : groupInWords(name, found),
        ),
      ]
      output.out(`${parts.join('\n\n')}\n`)
    }
    return [...servers.map(([, , found]) => found), ...groups.map(([, found]) => found)].every(
      (found) => !('error' in found),
    )
  } finally {
    await bridge.close()
  }
}

/** A server or group that could not be described. */
interface Failed extends OperatorAdvice {
  error: string
  /** Further lines for people. */
  lines: readonly string[]
}

/** `login`: the command that signs in, if that is what the server requires. */
function failed(fault: Fault, { server, login }: { server?: UpstreamServer; login?: string | undefined } = {}): Failed {
  const { message } = fault
  if (login !== undefined) return { error: `${message}: ${login}`, next: login, lines: [] }
  const target = server === undefined || server.isProgram ? undefined : server.target
  return { error: message, ...failureFields(fault, true), lines: failureLines(fault, { probing: true, target }) }
}

function failedInWords({ error, lines }: Failed): string {
  return [`  unavailable: ${printable(error, ERROR)}`, ...lines.map((line) => `  ${line}`)].join('\n')
}
