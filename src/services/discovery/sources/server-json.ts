/** How to reach a server, by a registry's `server.json` and by similar documents. */

import * as z from 'zod'
import { parseAddress } from '../../../base/net/address.js'
import { printable } from '../../../base/texts/printable.js'
import { httpEndpoint, stdioEndpoint } from '../../../config/endpoint.js'
import { type Finding, isPlain, transportNamed } from '../candidate.js'
import { failure } from '../failure.js'

/** How to reach a server. */
export type ServerAddress = Pick<Finding, 'endpoint' | 'transport' | 'entry' | 'runnable' | 'wants'>

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

/** The programs that start packages, by the registry of the package. A document may choose among these only. */
const RUNNERS: ReadonlyMap<string, { programs: readonly string[]; before: readonly string[]; version: string }> =
  new Map([
    ['npm', { programs: ['npx'], before: ['-y'], version: '@' }],
    ['pypi', { programs: ['uvx'], before: [], version: '@' }],
    ['oci', { programs: ['docker', 'podman'], before: ['run', '-i', '--rm'], version: ':' }],
  ])

/** The validated value. Throws a Failure that does not quote the document. */
export function parsed<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const path = result.error.issues[0]?.path.join('.') ?? ''
  throw failure('document', 'malformed', `${what} is invalid${path === '' ? '' : ` (${printable(path, 100)})`}`)
}

/** The JSON of a document. Throws a Failure that does not quote it. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw failure('document', 'malformed', 'The fetched document is not JSON')
  }
}

/** The address of a server (`remotes[]`). */
export function remoteOf(value: unknown): ServerAddress {
  const { type, url, headers, variables } = parsed(remote, value, 'An address of a server')
  const { text, wants } = filled({ value: url, variables }, 'address')
  if (wants.length > 0) throw failure('document', 'incomplete', 'The address of a server has variables without a value')
  return reachedAt(
    text,
    type,
    headers.filter(({ isRequired }) => isRequired === true).map(({ name }) => `header ${name}`),
  )
}

/** A server at an address from a document. Nothing of this machine is added to it. */
export function reachedAt(address: string, type: unknown, wants: readonly string[] = []): ServerAddress {
  const transport = transportNamed(type)
  if (transport === undefined || transport === 'stdio')
    throw failure('document', 'unsupported', 'A document names an unsupported transport')
  const { username, password } = parseAddress(address)
  if (username !== '' || password !== '')
    throw failure('url', 'credentials', 'An address of a document must not have a user name or password')
  if (!isPlain(address))
    throw failure('url', 'malformed', 'An address of a document has a placeholder or invisible characters')
  const endpoint = httpEndpoint(address)
  return { endpoint, transport, entry: { type: transport, url: endpoint.url }, runnable: true, ...wanting(wants) }
}

/** The command that starts a package (`packages[]`), as a person would write it. It is shown, never run. */
export function packageOf(value: unknown): ServerAddress {
  const one = parsed(packaged, value, 'A package of a server')
  const runner = RUNNERS.get(one.registryType)
  const program = one.runtimeHint ?? runner?.programs[0] ?? ''
  if (!runner?.programs.includes(program) || one.transport.type !== 'stdio')
    throw failure('document', 'unsupported', 'A document names an unsupported kind of package')
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

/** A command from a document. */
export function shownCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  wants: readonly string[] = [],
): ServerAddress {
  // A `${…}` in an entry would be replaced by values of this machine.
  if (![command, ...args, ...Object.entries(env).flat()].every(isPlain))
    throw failure('document', 'malformed', 'A command of a document has a placeholder or invisible characters')
  const entry = { command, args, ...(Object.keys(env).length > 0 && { env }) }
  return { endpoint: stdioEndpoint(command, args), transport: 'stdio', entry, runnable: false, ...wanting(wants) }
}

/** A package with its version, unless the name has a version already, as with images. */
function withVersion({ identifier, version }: z.infer<typeof packaged>, separator: string): string {
  const last = identifier.slice(identifier.lastIndexOf('/') + 1)
  return version === undefined || last.includes(separator) ? identifier : `${identifier}${separator}${version}`
}

/** Arguments as on a command line. Optional arguments without a value are left out. */
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

/** The value of an input with its variables replaced. `<what>` stands for a value that a person must provide. */
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
