/** Runs `mcp-bridge bundle`: writes a server or group, with the bridge in front of it, as an extension for desktop programs. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { getAsset, isSea } from 'node:sea'
import type { Bridge } from '../../app/bridge.js'
import { value } from '../../base/rpc/splice.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { printable } from '../../base/texts/printable.js'
import { refersElsewhere } from '../../config/expand.js'
import { pathName } from '../../config/formats/served-names.js'
import type { Settings } from '../../config/settings.js'
import { isObject } from '../../config/value.js'
import type { Upstream } from '../../mcp/protocol/upstream.js'
import { discovered, pages } from '../../middle/describe/server.js'
import { probingBridge } from '../probe.js'
import type { Program } from '../program.js'
import { UsageError } from '../usage-error.js'
import { CONFIG, type ExtensionParts, manifestOf, PROGRAM } from './manifest.js'
import { OWN_FOLDER } from './own-folder.js'
import { asked, ownFiles } from './questions.js'
import { zip } from './zip.js'

export interface BundleAction {
  settings: Settings
  /** The configuration before references are replaced. */
  input: Readonly<Record<string, unknown>>
  output: string
  /** The server is not asked, and variables need not be set. */
  offline: boolean
}

/** The files of the bridge that one between a client on stdio and servers can need, by their names in the extension. */
const FILES: Readonly<Record<string, string>> = {
  [PROGRAM]: 'main.js',
  'server/bridge.cjs': 'bridge.cjs',
  'server/undici.cjs': 'undici.cjs',
  'server/cookies.cjs': 'cookies.cjs',
  'server/tracing.cjs': 'tracing.cjs',
  'server/zod.cjs': 'zod.cjs',
  'server/LICENSES.txt': 'LICENSES.txt',
}
/** Options that stay in the configuration: others concern HTTP, or this machine. */
const KEPT: readonly string[] = ['groups', 'compat', 'limits', 'timeouts']
const ICON = 'icon.png'
/** A PNG image in an address. */
const INLINE = /^data:image\/png;base64,([\w+/]+=*)$/
/** Most bytes of an icon. */
const ICON_BYTES = 1_048_576

/** Writes the extension. Throws a UsageError; rejects with a Fault if the server does not answer. */
export async function runBundle({ settings, input, output, offline }: BundleAction, program: Program): Promise<void> {
  const bridge = await probingBridge(settings, program)
  try {
    const { name, isGroup, upstream } = served(bridge)
    const entries = entriesIn(input)
    const { servers, questions } = asked(entries, isKind('isDirectory'))
    const told = offline ? undefined : await describe(upstream)
    const icon = iconOf(told?.identity.icons)
    const parts: ExtensionParts = {
      name: pathName((isGroup ? undefined : told?.identity.name) ?? name),
      host: hostOf(entries),
      identity: told?.identity ?? {},
      tools: told?.tools,
      icon: typeof icon === 'string' ? icon : icon && ICON,
      questions,
    }
    const kept = Object.fromEntries(KEPT.flatMap((key) => (input[key] === undefined ? [] : [[key, input[key]]])))
    const files = new Map<string, Uint8Array>([
      ['manifest.json', inJson(manifestOf(parts))],
      [CONFIG, inJson({ ...kept, mcpServers: servers })],
      ...(icon && typeof icon !== 'string' ? [[ICON, icon] as const] : []),
      ...Object.entries(FILES).map(([path, file]) => [path, ownFile(file)] as const),
    ])
    const archive = zip(files)
    writeFileSync(output, archive)
    const left = Object.keys(input).filter((key) => key !== 'mcpServers' && !KEPT.includes(key))
    program.output.err(notes(servers, left))
    program.output.out(summary(output, archive.length, parts))
  } finally {
    await bridge.close()
  }
}

/** A file of the built bridge. The executable has it inside. */
function ownFile(name: string): Uint8Array {
  return isSea() ? new Uint8Array(getAsset(name)) : readFileSync(new URL(name, OWN_FOLDER))
}

/** What the extension serves: the only group, or else the only server, as on stdio. */
function served({ groups, mounts }: Bridge) {
  const all = groups.size > 0 ? groups : mounts
  const [[name, { upstream }] = ['', { upstream: undefined }], ...others] = all
  if (upstream === undefined || others.length > 0)
    throw new UsageError(
      `an extension is one server or one group: give --group or --server with one of ${[...all.keys()].join(', ')}`,
      'bundle',
    )
  return { name, isGroup: groups.size > 0, upstream }
}

function entriesIn({ mcpServers }: BundleAction['input']): Record<string, unknown> {
  const entries = isObject(mcpServers) ? Object.entries(mcpServers) : []
  return Object.fromEntries(entries.filter(([, entry]) => isObject(entry) && entry['disabled'] !== true))
}

/** The host of the only server; undefined without one, and if only the user knows it. */
function hostOf(entries: Readonly<Record<string, unknown>>): string | undefined {
  const [only, ...others] = Object.values(entries)
  const url = others.length === 0 && isObject(only) ? only['url'] : undefined
  return typeof url === 'string' && !refersElsewhere(url) ? parseUrl(url)?.host : undefined
}

/** What a server or group says of itself, and its tools as its clients see them. */
async function describe(upstream: Pick<Upstream, 'handle'>) {
  const { server: identity, capabilities } = await discovered(upstream)
  const tools: { name: string; description?: string | undefined }[] = []
  if (!('tools' in capabilities)) return { identity, tools }
  for await (const page of pages(upstream, 'tools/list')) {
    const listed = value(page, 'tools')
    for (const tool of Array.isArray(listed) ? (listed as unknown[]) : []) {
      if (!isObject(tool) || typeof tool['name'] !== 'string') continue
      const { name, description } = tool
      tools.push({ name, ...(typeof description === 'string' && { description }) })
    }
  }
  return { identity, tools }
}

/** The bytes of a PNG image, or the address of one; undefined if there is none. */
function iconOf(icons: unknown): Buffer | string | undefined {
  for (const icon of Array.isArray(icons) ? (icons as unknown[]) : []) {
    const src = isObject(icon) && typeof icon['src'] === 'string' ? icon['src'] : ''
    const [, inline] = INLINE.exec(src) ?? []
    const bytes = inline === undefined ? undefined : Buffer.from(inline, 'base64')
    if (bytes && bytes.length <= ICON_BYTES) return bytes
    if (/^https:\/\/\S+\.png$/i.test(src) && parseUrl(src)) return src
  }
  return undefined
}

function isKind(kind: 'isFile' | 'isDirectory') {
  // A word such as "." is a folder wherever it is read.
  return (path: string) =>
    (isAbsolute(path) || /^\.{1,2}(?:[\\/]|$)/.test(path)) &&
    statSync(path, { throwIfNoEntry: false })?.[kind]() === true
}

function inJson(content: object): Buffer {
  return Buffer.from(`${JSON.stringify(content, null, 2)}\n`)
}

function notes(servers: Readonly<Record<string, unknown>>, left: readonly string[]): string {
  const files = ownFiles(servers, isKind('isFile'))
  return [
    ...files.map(
      (file) => `note: ${printable(file)} is not in the extension: its user needs that file at the same place\n`,
    ),
    ...(left.length === 0 ? [] : [`note: without ${left.join(', ')}, which an extension does not need\n`]),
  ].join('')
}

function summary(output: string, bytes: number, { name, identity, tools, questions }: ExtensionParts): string {
  const shown = printable(identity.title ?? identity.name ?? name, 200)
  const size = `${(bytes / 1_000_000).toFixed(1)} MB`
  const what = tools === undefined ? '' : `, ${tools.length} tools`
  const lines = questions.map(
    ({ title, sensitive, default: initial }) =>
      `  asks for   ${printable(title)}${sensitive ? ' (secret)' : initial === undefined ? '' : `, by default ${printable(initial)}`}\n`,
  )
  return `${output}: ${shown}${what}, ${size}\n${lines.join('')}`
}
