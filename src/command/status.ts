/** Runs `mcp-bridge status`: asks the bridges of this machine for their state, and prints it. */
import { parseUrl } from '../base/texts/parse-url.js'
import { printable, printableLines } from '../base/texts/printable.js'
import type { Program } from './program.js'
import { type AskedBridge, askStatus, START } from './status-answer.js'
import { type StatusAction, type StatusTarget, statusTargets } from './status-targets.js'
import { statusInWords } from './status-words.js'
import { socketsOf } from './tail-target.js'

/** Prints the state of the bridges. Resolves to whether there is one, and all of them are well. Throws a UsageError. */
export async function runStatus(action: StatusAction, { output, env, uid = -1 }: Program): Promise<boolean> {
  const { targets, refused } = await statusTargets(action, socketsOf(env), uid)
  for (const { path, why } of refused)
    output.err(`mcp-bridge status: ${printable(path, 300)} is not used: ${printable(why, 200)}\n`)
  const asked = await Promise.all(targets.map((target) => askStatus(target, env)))
  const answered = asked.filter((one) => one !== undefined)
  // One at a usual address may have been found by its socket, too.
  const reached = new Set(answered.flatMap(({ reported }) => reported?.origins?.map(portOf) ?? []))
  const bridges = answered.filter(({ address, reported }) => reported?.origins || !reached.has(portOf(address)))
  if (action.json) output.out(`${printableLines({ bridges: bridges.map(asJson) })}\n`)
  else if (bridges.length > 0) output.out(bridges.map((one) => statusInWords(one, Date.now())).join('\n'))
  if (bridges.length === 0) output.err(noneRuns(targets))
  return bridges.length > 0 && bridges.every(isWell)
}

/** The port of an origin: of one process, it is the same at all names of this machine. */
function portOf(origin: string): string {
  return parseUrl(origin)?.port || origin
}

function noneRuns(targets: readonly StatusTarget[]): string {
  const places = targets.map(({ address }) => address).filter((address) => !address.startsWith('stdio'))
  const where = places.length === 0 ? '' : `, and none answers at ${places.join(' or ')}`
  return [
    `mcp-bridge: no bridge was found: none runs as this user${where}`,
    '  Of one at another address, give it: mcp-bridge status http://127.0.0.1:8081, or name its file with --config.',
    `  ${START}`,
    '',
  ].join('\n')
}

function asJson({ address, reported: found, error, next }: AskedBridge): object {
  return { address, ...found, ...(error !== undefined && { error }), ...(next !== undefined && { next }) }
}

/** Whether a bridge, everything behind it, and what it depends on can be used. */
function isWell({ reported: found }: AskedBridge): boolean {
  if (!found) return false
  const { status, redis, issuers = {}, servers = {}, groups = {} } = found
  const states = [...Object.values(servers), ...Object.values(groups), ...Object.values(issuers)]
  return status === 'ready' && redis !== 'down' && states.every(({ state }) => state !== 'down')
}
