/**
 * The schema and reader of the manifest, in which a publisher describes its servers and says for how long this holds
 * (docs/discovery.md). `npm run schema` generates config/manifest.schema.json from it. An unknown member makes a manifest
 * invalid: it is signed like the rest, so it must not be ignored.
 */

import * as z from 'zod'
import { readStrictly, StrictJsonError } from '../../base/rpc/strict-json.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { DECEPTIVE, printable } from '../../base/texts/printable.js'
import { httpEndpoint } from '../../config/endpoint.js'

/** A manifest is invalid. The message says where. */
export class ManifestError extends Error {
  override name = 'ManifestError'
  /** As in `servers.0.transports.0.url`; empty for the whole document. */
  readonly path: string

  constructor(path: string, message: string) {
    super(path === '' ? `The manifest ${message}` : `${printable(path, 200)}: ${message}`)
    this.path = path
  }
}

/** Longest manifest. */
const MAX_MANIFEST_BYTES = 256 * 1024
const UNKNOWN = 'is not a member of a manifest'
const MAX_MANIFEST_DEPTH = 16
const MAX_MANIFEST_SERVERS = 64
/** Of all servers together. */
const MAX_MANIFEST_TOOLS = 2_000
/** Longest validity in milliseconds: a manifest must be renewed at least once a year. */
const MAX_VALIDITY = 366 * 86_400_000

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((value) => !DECEPTIVE.test(value), 'has invisible characters')

/** The name is also the key of the server in generated configurations. */
const serverName = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, 'has to begin with a letter or digit and be made of these, ".", "_" and "-"')
  .refine((name) => !(name in {}), 'is a reserved name')

const publisher = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9.-]{0,126}[a-z0-9])?$/, 'has to be made of small letters, digits, "." and "-"')

/** An address in canonical spelling, so that signed and compared texts are equal. */
const address = z
  .string()
  .max(2_048)
  .superRefine((url, context) => {
    const message = wrongWith(url)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

function wrongWith(url: string): string | undefined {
  const parsed = parseUrl(url)
  if (!parsed) return 'has to be an https:// address'
  const { protocol, hostname, username, password } = parsed
  if (username !== '' || password !== '') return 'must not have a user name or password'
  if (url.includes('#')) return 'must not have a fragment'
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    return 'has to be an https:// address; http:// is for this machine only'
  const href = spelling(url)
  return href === url || href === `${url}/` ? undefined : `has to be written as ${printable(href ?? 'an address', 200)}`
}

function spelling(url: string): string | undefined {
  try {
    return httpEndpoint(url).url
  } catch {
    return undefined
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
}

const overHttp = (type: 'streamable-http' | 'sse') => z.strictObject({ type: z.literal(type), url: address })

const transport = z.discriminatedUnion('type', [
  overHttp('streamable-http'),
  overHttp('sse'),
  z
    .strictObject({
      type: z.literal('stdio'),
      command: text(1_024),
      args: z.array(text(1_024)).max(64).default([]),
    })
    .describe('A program. It is shown to people and never started because a manifest names it.'),
])

const tool = z.strictObject({
  name: text(128),
  annotations: z
    .strictObject({
      title: text(256).optional(),
      readOnlyHint: z.boolean().optional(),
      destructiveHint: z.boolean().optional(),
      idempotentHint: z.boolean().optional(),
      openWorldHint: z.boolean().optional(),
    })
    .optional()
    .describe('As the server lists them.'),
  scopes: z.array(text(256)).max(32).default([]).describe('All of which it takes to see and to call the tool.'),
})

const auth = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({ type: z.literal('bearer') }),
  z.strictObject({ type: z.literal('oauth'), resourceMetadata: address.optional() }),
])

const server = z.strictObject({
  name: serverName.describe('Names the server in this document and wherever it is served.'),
  version: text(128).describe('As the server says it in its handshake.'),
  serverName: text(256).optional().describe('What the server calls itself in its handshake; the name by default.'),
  description: text(2_000).optional(),
  transports: z.array(transport).min(1).max(8).describe('Ways to reach the server, the best one first.'),
  protocolRevisions: z
    .array(z.iso.date())
    .min(1)
    .max(32)
    .describe('Revisions of MCP that the server speaks, as in 2026-07-28.'),
  capabilities: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('As in the handshake, which has to offer the same; anything if it is left out.'),
  tools: z
    .union([z.literal('runtime'), z.array(tool).max(MAX_MANIFEST_TOOLS)])
    .default('runtime')
    .describe('All tools of the server, or "runtime": they are asked for when the server is reached.'),
  auth: auth.optional().describe('What the server wants of those who call it.'),
})

const instant = z.iso.datetime().transform((iso) => Date.parse(iso))

const manifestSchema = z
  .strictObject({
    $schema: z.string().max(2_048).optional().describe('Address of the JSON Schema of this document, for editors.'),
    manifest: z.literal(1).describe('Version of this format.'),
    publisher: publisher.describe('Who vouches for it: the name under which a trust store has the key.'),
    serial: z.int().nonnegative().describe('Goes up with each document of the publisher at this address.'),
    issued: instant.describe('From when it holds, in UTC, as in 2026-10-21T12:00:00Z.'),
    expires: instant.describe('Until when it holds: at most 366 days.'),
    servers: z.array(server).max(MAX_MANIFEST_SERVERS),
  })
  .superRefine(({ issued, expires, servers }, context) => {
    const wrong = (message: string, ...path: (string | number)[]) => context.addIssue({ code: 'custom', message, path })
    if (expires <= issued) wrong('is not after "issued"', 'expires')
    if (expires - issued > MAX_VALIDITY) wrong('is more than 366 days after "issued"', 'expires')
    const names = new Set<string>()
    let tools = 0
    for (const [at, { name, tools: listed }] of servers.entries()) {
      if (names.has(name.toLowerCase())) wrong('is used for two servers', 'servers', at, 'name')
      names.add(name.toLowerCase())
      if (listed === 'runtime') continue
      tools += listed.length
      if (tools > MAX_MANIFEST_TOOLS)
        return wrong(`brings the total above ${MAX_MANIFEST_TOOLS} tools`, 'servers', at, 'tools')
      const own = new Set<string>()
      for (const [nth, { name }] of listed.entries()) {
        if (own.has(name)) wrong('is used for two tools', 'servers', at, 'tools', nth, 'name')
        own.add(name)
      }
    }
  })

/** Times are milliseconds since 1970. */
export type Manifest = z.infer<typeof manifestSchema>
export type ManifestServer = Manifest['servers'][number]

/** Reads a manifest. Throws a ManifestError. */
export function readManifest(bytes: Uint8Array): Manifest {
  const value = jsonOf(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ManifestError('', 'is not a JSON object')
  const parsed = manifestSchema.safeParse(value)
  if (parsed.success) return parsed.data
  // A misspelled name also causes an issue that the correct one is missing.
  const issues = parsed.error.issues.flatMap((issue) => flatten(issue, []))
  const first = issues.find(({ message }) => message === UNKNOWN) ?? issues[0] ?? { path: '', message: 'is invalid' }
  throw new ManifestError(first.path, first.message)
}

/** The text of config/manifest.schema.json. */
export function manifestJsonSchema(): string {
  const schema = z.toJSONSchema(manifestSchema, { io: 'input', target: 'draft-7' })
  return `${JSON.stringify({ title: 'Manifest of MCP servers', ...schema }, null, 2)}\n`
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return readStrictly(bytes, { maxBytes: MAX_MANIFEST_BYTES, maxDepth: MAX_MANIFEST_DEPTH })
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error
    const { path, message } = error
    throw new ManifestError(path, path === '' ? message : message.slice(path.length + 2))
  }
}

/** The issues of the best matching branch of a union. */
function flatten(issue: z.core.$ZodIssue, before: readonly PropertyKey[]): { path: string; message: string }[] {
  const path = [...before, ...issue.path]
  if (issue.code === 'invalid_union') {
    const [closest] = [...issue.errors].sort((a, b) => depthOf(b) - depthOf(a))
    if (closest && closest.length > 0) return closest.flatMap((inner) => flatten(inner, path))
  }
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key].join('.'), message: UNKNOWN }))
  return [{ path: path.join('.'), message: issue.message }]
}

function depthOf(issues: readonly z.core.$ZodIssue[]): number {
  return Math.max(0, ...issues.map(({ path }) => path.length))
}
