/** Runs `mcp-bridge tail`: follows the inspector of a running bridge, and prints a line for each call. */
import type { IncomingMessage } from 'node:http'
import { painterFor } from '../base/log/paint.js'
import { printable } from '../base/texts/printable.js'
import { loadInspector, type PrintedForm, type TailOutput } from './inspector.js'
import { connect, type InspectorTarget, refusalOf, unreachable } from './tail-connection.js'
import { targetOf, type WantedBridge } from './tail-target.js'
import { UsageError } from './usage-error.js'

export interface TailOptions extends WantedBridge, PrintedForm {
  filter: string
}

/** Follows a bridge until it ends or the output is closed. Resolves to whether it could be followed. Throws a UsageError. */
export async function tail(options: TailOptions, output: TailOutput): Promise<boolean> {
  const { json, both, as } = options
  const { stdout, err, env } = output
  const { readFilter, printEvents } = await loadInspector()
  const filter = readFilter(options.filter)
  const { problem, hint } = filter
  if (problem !== undefined) throw new UsageError(`the filter is wrong: ${problem}`, 'tail')
  if (filter.isByText)
    throw new UsageError('text: works only on the page of the inspector: tail does not search texts', 'tail')
  if (hint !== undefined) err(`mcp-bridge tail: ${printable(hint, 400)}\n`)
  const target = await targetOf(options)
  let response: IncomingMessage
  try {
    response = await connect(target, json || both || as !== undefined, env)
  } catch (error) {
    err(`mcp-bridge tail: ${unreachable(target, error)}\n`)
    return false
  }
  const status = response.statusCode ?? 0
  if (status !== 200) {
    response.destroy()
    err(`mcp-bridge tail: ${refusalOf(status, target)}\n`)
    return false
  }
  if (stdout.isTTY === true && !json) stdout.write(painterFor(stdout, env)('dim', greeting(target)))
  await printEvents(response, filter, options, output)
  return true
}

function greeting({ url, socketPath }: InspectorTarget): string {
  return `Following ${socketPath ?? url.origin}: a line for each call that has ended or ends. M is the modern era, L the legacy era. Press Ctrl-C to stop.\n`
}
