/** What a registry's `server.json` says of how a server is reached, and what documents of the same family do. */

import * as z from 'zod'
import { parseAddress } from '../../net/address.js'
import { printable } from '../../printable.js'
import { type Finding, isPlain, transportNamed } from '../candidate.js'
import { httpEndpoint, stdioEndpoint } from '../endpoint.js'
import { failure } from '../failure.js'

/** How a server is reached, as a document has it. */
export type Reached = Pick<Finding, 'endpoint' | 'transport' | 'entry' | 'runnable' | 'wants'>

const input = z.object({
  value: z.string().optional(),
  default: z.string().optional(),
  isRequired: z.boolean().optional(),
  format: z.string().optional(),
})
const template = input.extend({ variables: z.record(z.string(), input).default({}) })
const named = template.extend({ name: z.string() })
const argument = z.union([
  named.extend({ type: z.literal('named') }),
  template.extend({ type: z.literal('positional'), valueHint: z.string().default('argument') }),
])
const remote = z.object({
  type: z.string(),
  url: z.string(),
  headers: z.array(named).default([]),
  variables: z.record(z.string(), input).default({}),
})
const packaged = z.object({
  registryType: z.string(),
  identifier: z.string(),
  version: z.string().optional(),
  runtimeHint: z.string().optional(),
  runtimeArguments: z.array(argument).default([]),
  packageArguments: z.array(argument).default([]),
  environmentVariables: z.array(named).default([]),
  transport: z.object({ type: z.string() }).default({ type: 'stdio' }),
})

/** The programs that start packages, by where those come from. A document may choose among these, and name no other. */
const RUNNERS: ReadonlyMap<string, { programs: readonly string[]; before: readonly string[]; version: string }> =
  new Map([
    ['npm', { programs: ['npx'], before: ['-y'], version: '@' }],
    ['pypi', { programs: ['uvx'], before: [], version: '@' }],
    ['oci', { programs: ['docker', 'podman'], before: ['run', '-i', '--rm'], version: ':' }],
  ])

/** What a document has in one place, checked. Throws a Failure that quotes nothing of it. */
export function parsed<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const path = result.error.issues[0]?.path.join('.') ?? ''
  throw failure(
    'document',
    'malformed',
    `${what} is not as it should be${path === '' ? '' : ` (${printable(path, 100)})`}`,
  )
}

/** The JSON of a document. Throws a Failure that quotes nothing of it. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw failure('document', 'malformed', 'What was fetched is no JSON')
  }
}

/** An address that a server is reached at (`remotes[]`). */
export function remoteOf(value: unknown): Reached {
  const { type, url, headers, variables } = parsed(remote, value, 'An address of a server')
  const { text, wants } = filled({ value: url, variables }, 'address')
  if (wants.length > 0) throw failure('document', 'incomplete', 'An address of a server has to be filled in first')
  return reachedAt(
    text,
    type,
    headers.filter(({ isRequired }) => isRequired === true).map(({ name }) => `header ${name}`),
  )
}

/** A server at an address that a document names, which takes nothing of us with it. */
export function reachedAt(address: string, type: unknown, wants: readonly string[] = []): Reached {
  const transport = transportNamed(type)
  if (transport === undefined || transport === 'stdio')
    throw failure('document', 'unsupported', 'A server is reached in a way that is not known here')
  const { username, password } = parseAddress(address)
  if (username !== '' || password !== '')
    throw failure('url', 'credentials', 'A document names no user and no password')
  if (!isPlain(address)) throw failure('url', 'malformed', 'An address of a document refers to something of ours')
  const endpoint = httpEndpoint(address)
  return { endpoint, transport, entry: { type: transport, url: endpoint.url }, runnable: true, ...wanting(wants) }
}

/** The command that starts a package (`packages[]`), as a person would write it: it is shown, and never run. */
export function packageOf(value: unknown): Reached {
  const one = parsed(packaged, value, 'A package of a server')
  const runner = RUNNERS.get(one.registryType)
  const program = one.runtimeHint ?? runner?.programs[0] ?? ''
  if (!runner?.programs.includes(program) || one.transport.type !== 'stdio')
    throw failure('document', 'unsupported', 'A package is started in a way that is not known here')
  const runtime = rendered(one.runtimeArguments)
  const own = rendered(one.packageArguments)
  const variables = one.environmentVariables
    .filter(isGiven)
    .map((variable) => ({ ...variable, ...filled(variable, variable.name) }))
  const image = one.registryType === 'oci' ? variables.flatMap(({ name }) => ['-e', name]) : []
  const start = runner.before.filter((flag) => !runtime.texts.includes(flag))
  const args = [...start, ...image, ...runtime.texts, withVersion(one, runner.version), ...own.texts]
  return shownCommand(program, args, Object.fromEntries(variables.map(({ name, text }) => [name, text])), [
    ...runtime.wants,
    ...own.wants,
    ...variables.filter(({ wants }) => wants.length > 0).map(({ name }) => `variable ${name}`),
  ])
}

/** A command that a document names. */
export function shownCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  wants: readonly string[] = [],
): Reached {
  // In an entry, what is in ${} would be replaced by what only we know.
  if (![command, ...args, ...Object.entries(env).flat()].every(isPlain))
    throw failure('document', 'malformed', 'A command of a document has something in it that cannot be shown')
  const entry = { command, args, ...(Object.keys(env).length > 0 && { env }) }
  return { endpoint: stdioEndpoint(command, args), transport: 'stdio', entry, runnable: false, ...wanting(wants) }
}

/** A package and its version, where that is not in its name already, as in images. */
function withVersion({ identifier, version }: z.infer<typeof packaged>, separator: string): string {
  const last = identifier.slice(identifier.lastIndexOf('/') + 1)
  return version === undefined || last.includes(separator) ? identifier : `${identifier}${separator}${version}`
}

/** Arguments as they stand on a command line. What has no value and need not have one is left out. */
function rendered(list: readonly z.infer<typeof argument>[]): { texts: string[]; wants: string[] } {
  const texts: string[] = []
  const wants: string[] = []
  for (const one of list) {
    const label = one.type === 'named' ? one.name : one.valueHint
    if (one.type === 'named' && (isGiven(one) || (one.format ?? 'boolean') === 'boolean')) texts.push(one.name)
    if (!isGiven(one)) continue
    const value = filled(one, label)
    texts.push(value.text)
    wants.push(...value.wants)
  }
  return { texts, wants }
}

function isGiven(one: z.infer<typeof input>): boolean {
  return one.value !== undefined || one.default !== undefined || one.isRequired === true
}

/** The value of an input, its variables filled in. Where a person has to say something, `<what>` stands for it. */
function filled(
  { value, default: usual, variables }: z.infer<typeof template>,
  label: string,
): { text: string; wants: string[] } {
  const whole = value ?? usual
  if (whole === undefined) return { text: `<${label}>`, wants: [label] }
  const wants: string[] = []
  const text = whole.replace(/\{([\w.-]+)\}/g, (reference, key: string) => {
    const variable = Object.hasOwn(variables, key) ? variables[key] : undefined
    const known = variable?.value ?? variable?.default
    if (known === undefined) wants.push(key)
    return known ?? (variable === undefined ? reference : `<${key}>`)
  })
  return { text, wants }
}

function wanting(wants: readonly string[]): { wants?: string[] } {
  return wants.length > 0 ? { wants: [...new Set(wants)].map((name) => printable(name, 100)) } : {}
}
