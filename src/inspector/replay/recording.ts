/** The file of recorded calls, which `mcp-bridge replay` runs again: its form, and how it is read and written. */

import { LEGACY, MODERN } from '../../mcp/protocol/eras.js'
import { isRecord } from '../record.js'
import type { JsonRecord } from '../try/types.js'
import { pointerOf } from './diff.js'

/** The value of the member `recording` of a file. Another form will have another number. */
const RECORDING_VERSION = 1

/** A file of recorded calls. */
export interface Recording {
  recording: typeof RECORDING_VERSION
  /** Globs of JSON Pointers into `expect`, whose values are not compared: for all calls. */
  ignore?: readonly string[]
  calls: readonly RecordingCall[]
}

/** A call of a client, and the answer that it had. */
export interface RecordingCall {
  /** A name for people. */
  name?: string
  /** The server or group that was called. */
  server?: string
  /** The revision of the client. */
  revision: string
  /** The capabilities that the client declared. */
  capabilities?: JsonRecord
  method: string
  params: JsonRecord
  /** The answers to the questions of the server, in their order. */
  answers?: readonly RecordedAnswer[]
  expect: Expected
  /** As `ignore` of the file, for this call. */
  ignore?: readonly string[]
}

/** An answer to a question of the server. */
export interface RecordedAnswer {
  /** The method of the question, such as `elicitation/create`. */
  method: string
  result: JsonRecord
}

/** The answer of a call. */
export type Expected = { result: JsonRecord } | { error: JsonRecord }

/** Most characters of a file, and most calls in one. */
export const MAX_RECORDING = 64 * 1024 * 1024
export const MAX_RECORDING_CALLS = 10_000
/** Most levels of a file. */
const MAX_RECORDING_DEPTH = 500

/** The placeholder of a hidden value. */
const HIDDEN_VALUE = /‹(?:hidden|sealed, \d+ B|\d+ characters, sha256 [\da-f]{16})›/

/** A file is invalid. */
class RecordingError extends Error {
  override name = 'RecordingError'

  /** `at`: JSON Pointer of the wrong value. */
  constructor(at: string, why: string) {
    super(at === '' ? why : `${at} ${why}`)
  }
}

/** The recording of a text. Throws a RecordingError. */
export function readRecording(text: string): Recording {
  if (text.length > MAX_RECORDING)
    throw new RecordingError('', `the file is larger than ${MAX_RECORDING / 1024 / 1024} MB`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new RecordingError('', `the file is not JSON: ${(error as Error).message}`)
  }
  if (!isShallow(value)) throw new RecordingError('', `the file is nested more than ${MAX_RECORDING_DEPTH} levels deep`)
  const file = record(value, '')
  if (!('recording' in file) || !Array.isArray(file['calls']))
    throw new RecordingError('', 'the file is not a recording of mcp-bridge: it has no "recording" or no list "calls"')
  if (file['recording'] !== RECORDING_VERSION)
    throw new RecordingError('/recording', `has to be ${RECORDING_VERSION}: this version reads no other`)
  check(file, '', { recording: isAny, ignore: isGlobs, calls: isAny })
  const { calls } = file
  if (calls.length > MAX_RECORDING_CALLS)
    throw new RecordingError('/calls', `has more than ${MAX_RECORDING_CALLS} calls`)
  for (const [i, call] of calls.entries()) checkCall(call, `/calls/${i}`)
  return file as unknown as Recording
}

/** The text of a recording. */
export function writeRecording({ ignore, calls }: Pick<Recording, 'ignore' | 'calls'>): string {
  return recordingText(ignore, calls.map(writeCall))
}

/** The text of a call in a recording. */
export function writeCall(call: RecordingCall): string {
  return JSON.stringify(call, null, 2).replaceAll('\n', '\n    ')
}

/** The text of a recording, from the texts of its calls. */
export function recordingText(ignore: readonly string[] | undefined, calls: readonly string[]): string {
  const members = [
    `"recording": ${RECORDING_VERSION}`,
    ...(ignore ? [`"ignore": ${JSON.stringify(ignore)}`] : []),
    calls.length === 0 ? '"calls": []' : `"calls": [\n    ${calls.join(',\n    ')}\n  ]`,
  ]
  return `{\n  ${members.join(',\n  ')}\n}\n`
}

/** JSON Pointers of values that were hidden when a call was recorded. */
export function hiddenIn(value: unknown, at = ''): string[] {
  if (typeof value === 'string') return HIDDEN_VALUE.test(value) ? [at] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => hiddenIn(member, `${at}${pointerOf([name])}`))
}

/** A requirement in words, and whether a value meets it. */
type Check = readonly [what: string, isRight: (value: unknown, at: string) => boolean]

const isAny: Check = ['', () => true]
const isText: Check = ['has to be a text', (value) => typeof value === 'string']
const isGlobs: Check = [
  'has to be a list of JSON Pointers, as in "/result/structuredContent/time"',
  (value) => Array.isArray(value) && value.every((one) => typeof one === 'string' && one.startsWith('/')),
]
const isObject: Check = ['has to be an object', isRecord]
const isRevision: Check = [
  `has to be a revision of MCP: ${[...MODERN, ...LEGACY].join(', ')}`,
  (value) => ([...MODERN, ...LEGACY] as unknown[]).includes(value),
]
const isAnswers: Check = [
  'has to be a list',
  (value, at) =>
    Array.isArray(value) && value.every((one, i) => check(record(one, `${at}/${i}`), `${at}/${i}`, ANSWER)),
]
const isExpected: Check = [
  'has to have "result" or "error", an object',
  (value, at) => {
    const expected = record(value, at)
    const [name, ...others] = Object.keys(expected)
    return (name === 'result' || name === 'error') && others.length === 0 && isRecord(expected[name])
  },
]

const ANSWER = { method: isText, result: isObject }
const CALL = {
  name: isText,
  server: isText,
  revision: isRevision,
  capabilities: isObject,
  method: isText,
  params: isObject,
  answers: isAnswers,
  expect: isExpected,
  ignore: isGlobs,
}
const REQUIRED: ReadonlySet<string> = new Set(['revision', 'method', 'params', 'expect', 'result'])

function checkCall(value: unknown, at: string): void {
  check(record(value, at), at, CALL)
}

/** Checks the members of an object. Throws a RecordingError. */
function check(value: JsonRecord, at: string, members: Readonly<Record<string, Check>>): true {
  for (const name of Object.keys(value))
    if (!Object.hasOwn(members, name))
      throw new RecordingError(
        at,
        `has an unknown member "${name.slice(0, 60)}": there are ${Object.keys(members).join(', ')}`,
      )
  for (const [name, [what, isRight]] of Object.entries(members)) {
    if (!Object.hasOwn(value, name)) {
      if (REQUIRED.has(name)) throw new RecordingError(at, `lacks "${name}"`)
    } else if (!isRight(value[name], `${at}/${name}`)) throw new RecordingError(`${at}/${name}`, what)
  }
  return true
}

function record(value: unknown, at: string): JsonRecord {
  if (isRecord(value)) return value
  throw new RecordingError(at === '' ? 'the file' : at, 'has to be an object')
}

/** Whether values are nested at most as deep as is read. */
function isShallow(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_RECORDING_DEPTH) return false
    const deeper: unknown[] = []
    for (const one of level)
      if (typeof one === 'object' && one !== null)
        for (const member of Object.values(one) as unknown[]) if (typeof member === 'object') deeper.push(member)
    level = deeper
  }
  return true
}
