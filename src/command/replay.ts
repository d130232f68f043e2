/** Runs `mcp-bridge replay`: makes the calls of a recording through a bridge of its own, and prints what differs. */
import { readFileSync, statSync } from 'node:fs'
import type { Bridge } from '../app/bridge.js'
import { Fault } from '../base/fault/fault.js'
import { type Paint, painterFor } from '../base/log/paint.js'
import { printable, printableJson, printableLines } from '../base/texts/printable.js'
import { utf8Text } from '../config/formats/utf8.js'
import type { Settings } from '../config/settings.js'
import {
  type Difference,
  type InspectorParts,
  loadInspector,
  type Recording,
  type RecordingCall,
  type Replayed,
  type ReplayOptions,
} from './inspector.js'
import { probingBridge } from './probe.js'
import type { Program } from './program.js'
import { UsageError } from './usage-error.js'

export interface ReplayCommand {
  file: string
  settings: Settings
  json: boolean
}

/** Most characters of a value, a name and a sentence. */
const VALUE = 400
const NAME = 200
const SENTENCE = 1_000

/**
 * Makes the calls of a file, and prints what came of them. Resolves to whether all were answered as recorded. Throws a UsageError
 * if the file is wrong. Rejects with a Fault if the only server is not reachable.
 */
export async function runReplay({ file, settings, json }: ReplayCommand, program: Program): Promise<boolean> {
  const parts = await loadInspector()
  const recording = recordingIn(file, parts)
  const { env, output, errors } = program
  const bridge = await probingBridge(settings, program)
  const paint = painterFor(program.stdout, env)
  try {
    if (bridge.mounts.size === 1 && !bridge.server.isProgram) errors.target = bridge.server.target
    await bridge.warmUp((_mount, verdict) => {
      if (verdict instanceof Fault && bridge.mounts.size === 1) throw verdict
    })
    const all: Replayed[] = []
    for await (const one of parts.replayed(recording, optionsOf(bridge, settings, parts))) {
      all.push(json ? one : { ...one, differences: [] })
      if (!json) output.out(inLines(one, paint))
    }
    output.out(json ? jsonOf(all) : summaryOf(all))
    return all.every(({ outcome }) => outcome === 'same')
  } finally {
    await bridge.close()
  }
}

/** The recording in a file. Throws a UsageError. */
function recordingIn(file: string, { MAX_RECORDING, readRecording }: InspectorParts): Recording {
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found) throw new Error('the file does not exist')
    // Reading a pipe waits for its writer, and a device may have no end.
    if (!found.isFile()) throw new Error('it is not a file')
    // A larger file would be read for nothing.
    if (found.size > MAX_RECORDING) throw new Error(`the file is larger than ${MAX_RECORDING / 1024 / 1024} MB`)
    return readRecording(utf8Text(readFileSync(file)))
  } catch (error) {
    throw new UsageError(
      `cannot use ${printable(file, NAME)}: ${printable((error as Error).message, SENTENCE)}`,
      'replay',
    )
  }
}

function optionsOf({ inspected }: Bridge, settings: Settings, { redactor }: InspectorParts): ReplayOptions {
  const redact = redactor(settings.inspect?.hide ?? [])
  const names = inspected.targets().map(({ name }) => name)
  const [only] = names.length === 1 ? names : []
  return {
    signal: new AbortController().signal,
    redact: (text) => redact(text).text,
    targetOf({ server }) {
      if (only !== undefined) return only
      if (server !== undefined && names.includes(server)) return server
      const wanted = server === undefined ? 'The recording names no server' : `There is no server or group "${server}"`
      throw new Error(`${wanted}: there are ${names.join(', ')}. Choose one with --server or --group`)
    },
    send: sender(inspected),
  }
}

/** Sends requests to what the bridge serves. */
function sender({ call }: Bridge['inspected']) {
  return async (...[target, { method, headers, body, signal }]: Parameters<ReplayOptions['send']>) => {
    const bytes = body === undefined ? undefined : new Uint8Array(Buffer.from(body))
    const answer = await call(target, { method, headers, body: bytes, signal })
    if (!answer) throw new Error(`There is no server or group "${target}"`)
    return answer
  }
}

const SIGNS = { same: ['✓', 'green'], different: ['✗', 'red'], failed: ['!', 'yellow'] } as const
const OPERATIONS = { add: ['+', 'green'], remove: ['−', 'red'], replace: ['~', 'yellow'] } as const

/** A call in a line, with its differences below. */
function inLines({ call, outcome, ms, problems, differences, more }: Replayed, paint: Paint): string {
  const [sign, colour] = SIGNS[outcome]
  const lines = [
    `${paint(colour, sign)} ${nameOf(call)} ${paint('dim', `(${call.revision}, ${Math.round(ms)} ms)`)}`,
    ...problems.map((problem) => `    ${printable(problem, SENTENCE)}`),
    ...differences.flatMap((one) => differenceLines(one, paint)),
    ...(more > 0 ? [`    and ${more} more differences`] : []),
  ]
  return `${lines.join('\n')}\n`
}

function differenceLines({ op, at, to, expected, actual }: Difference, paint: Paint): string[] {
  const [sign, colour] = OPERATIONS[op]
  const moved = to === undefined ? '' : paint('dim', `, now ${shownAt(to)}`)
  return [
    `    ${paint(colour, sign)} ${shownAt(at)}${moved}`,
    ...(op === 'add' ? [] : [`        recorded: ${shownValue(expected)}`]),
    ...(op === 'remove' ? [] : [`        now:      ${shownValue(actual)}`]),
  ]
}

function shownAt(pointer: string): string {
  return pointer === '' ? '(the whole answer)' : printable(pointer, NAME)
}

function shownValue(value: unknown): string {
  return printable(printableJson(JSON.stringify(value)), VALUE)
}

function nameOf({ name, method }: RecordingCall): string {
  return printable(name ?? method, NAME)
}

function counted(all: readonly Replayed[]): { same: number; different: number; failed: number } {
  const count = (wanted: Replayed['outcome']) => all.filter(({ outcome }) => outcome === wanted).length
  return { same: count('same'), different: count('different'), failed: count('failed') }
}

function summaryOf(all: readonly Replayed[]): string {
  if (all.length === 0) return 'The recording has no calls.\n'
  const { same, different, failed } = counted(all)
  const parts = [
    `${same} as recorded`,
    ...(different > 0 ? [`${different} with another answer`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ]
  return `${all.length} ${all.length === 1 ? 'call' : 'calls'}: ${parts.join(', ')}\n`
}

function jsonOf(all: readonly Replayed[]): string {
  const calls = all.map(({ call: { name, server, revision, method }, outcome, ms, problems, differences, more }) => ({
    name,
    server,
    revision,
    method,
    outcome,
    ms: Math.round(ms),
    ...(problems.length > 0 && { problems }),
    ...(differences.length > 0 && { differences }),
    ...(more > 0 && { more }),
  }))
  return `${printableLines({ ...counted(all), calls })}\n`
}
