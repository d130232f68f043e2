/** Runs `mcp-bridge discover`. */

import { isLoopback } from '../base/net/guard.js'
import { printable, printableLines } from '../base/texts/printable.js'
import type { Endpoint } from '../config/endpoint.js'
import type { Settings } from '../config/settings.js'
import type { Candidate, PlaceFailure } from '../services/discovery/candidate.js'
import type { Discovery } from '../services/discovery/discovery.js'
import type { Progress } from '../services/discovery/progress.js'
import { type Discovered, discover, type Examined } from '../services/discovery/steps.js'
import { withFlags } from '../services/discovery/trust/remedy.js'
import { signInRows } from '../services/oauth/client/explain.js'

/** The output of a command. */
export interface CommandOutput {
  /** The result. */
  out(text: string): void
  /** Progress. */
  err(text: string): void
  terminal: boolean
}

const WIDTH = 100
/** Advice about a host that the guard refuses. */
const HINT =
  'Discovery reaches public hosts over TLS only. Allow others with --discover-allow <host or network>, and this machine with --discover-loopback.'

/** Advice about refused hosts. */
export function guardHint(endpoints: readonly Endpoint[]): string {
  const hosts = endpoints.flatMap((one) => (one.kind === 'http' ? [new URL(one.url).hostname] : []))
  const isHere = hosts.length > 0 && hosts.every((host) => isLoopback(host.replace(/^\[|\]$/g, '')))
  return isHere ? 'Discovery reaches this machine only with --discover-loopback: add it to the command.' : HINT
}

/** Finds and examines servers, and shows the progress. Commands in the verdicts can be pasted. */
export async function look(
  discovery: Discovery,
  settings: Settings,
  output: CommandOutput,
  targets: readonly string[] = settings.discover,
): Promise<Discovered> {
  const told = ({ about, step, ms, ok, message }: Progress) => {
    const line = printable(`${ok ? ' ' : '!'} ${about}  ${step}  ${Math.round(ms)} ms  ${message}`, WIDTH)
    output.err(output.terminal ? `\r\u001b[K${line}` : `${line}\n`)
  }
  const found = await discover(targets, discovery.parts, told, await discovery.own())
  if (output.terminal) output.err('\r\u001b[K')
  const servers = found.servers.map((one) => ({
    ...one,
    verdict: withFlags(one.verdict, { settings, config: discovery.config, ...one }),
  }))
  return { ...found, servers }
}

/** Shows the results. Resolves to whether any server is usable. */
export async function runDiscover(
  discovering: (settings: Settings) => Discovery,
  settings: Settings,
  output: CommandOutput,
  json: boolean,
): Promise<boolean> {
  const found = await look(discovering(settings), settings, output)
  output.out(json ? `${printableLines(asJson(found))}\n` : inWords(found))
  return found.servers.some(isUsable)
}

/** It answered and is not refused; it may still be untrusted. */
function isUsable({ introspected, verdict }: Examined): boolean {
  return introspected !== undefined && verdict.state !== 'refused'
}

function asJson({ servers, failures, leftOut }: Discovered): object {
  return {
    servers: servers.map((one) => {
      const { candidate, verdict, introspected, manifest, failure, signIn, steps } = one
      const { name, endpoint, source, from, alsoFrom, runnable, entry, wants } = candidate
      const { state, by, reason, missing, remedy, only } = verdict
      return {
        name,
        ...(endpoint.kind === 'http' ? { url: endpoint.url } : { command: endpoint.command, args: endpoint.args }),
        source,
        from,
        alsoFrom: alsoFrom.map(({ source, from }) => ({ source, from })),
        usable: isUsable(one),
        // An entry from the network can be copied. One written by a person may contain secrets.
        ...(!runnable && { entry }),
        ...(wants && { wants }),
        ...(introspected && {
          era: introspected.era,
          transport: introspected.transport,
          ...introspected.handshake,
          server: { name: introspected.handshake.name, version: introspected.handshake.version },
          name,
          version: undefined,
          tools: [...introspected.tools.tools].map(([name, { hints }]) => ({ name, ...hints })),
        }),
        ...(manifest && { manifest: { url: manifest.url, ...signatureIn(one) } }),
        ...(candidate.card && { card: candidate.card }),
        ...(failure && { failure: { phase: failure.phase, reason: failure.reason, message: failure.message } }),
        ...(signIn && { signIn: signIn.explanation }),
        steps: steps.map(({ step, ms, ok, message }) => ({ step, ms: Math.round(ms), ok, message })),
        trust: { state, by, only, reason, missing, remedy },
      }
    }),
    failures: failures.map(({ place, error: { phase, reason, message } }) => ({ place, phase, reason, message })),
    ...(leftOut > 0 && { leftOut }),
  }
}

function signatureIn({ manifest }: Examined): object {
  if (!manifest) return {}
  const { verification } = manifest
  return verification.trusted
    ? { signed: true, publisher: verification.publisher, keyId: verification.keyId }
    : { signed: false, publisher: verification.manifest?.publisher, why: verification.message }
}

function inWords({ servers, failures, leftOut }: Discovered): string {
  const blocks = servers.map(describe)
  if (blocks.length === 0) blocks.push('No server was found.')
  const guardedAt = servers.flatMap(({ failure, candidate }) => (failure ? [candidate.endpoint] : []))
  const guarded = [...failures.map(({ error }) => error), ...servers.flatMap(({ failure }) => failure ?? [])]
  if (guarded.some(({ phase, reason }) => phase === 'guard' || reason === 'scheme')) blocks.push(guardHint(guardedAt))
  if (leftOut > 0) blocks.push(`${leftOut} more were found and are not shown.`)
  if (failures.length > 0) blocks.push(failures.map(inLine).join('\n'))
  return `${blocks.join('\n\n')}\n`
}

function inLine({ place, error: { phase, message } }: PlaceFailure): string {
  return `! ${printable(place, WIDTH)}  ${phase}: ${printable(message, 1_000)}`
}

function describe({ candidate, verdict, introspected, signIn, steps }: Examined): string {
  const { name, from, alsoFrom, runnable, wants } = candidate
  const line = (label: string, text: string) => `  ${label.padEnd(13)}${text}`
  const places = [from, ...alsoFrom.map(({ from }) => from)].filter((one, at, all) => all.indexOf(one) === at)
  const lines = [
    `${name}  ${printable(targetOf(candidate), 500)}`,
    line('from', places.map((one) => printable(one, WIDTH)).join(', ')),
  ]
  for (const { step, ms, ok, message } of steps)
    lines.push(line(step, `${`${Math.round(ms)} ms`.padStart(8)}  ${ok ? '' : '! '}${message}`))
  if (wants && wants.length > 0) lines.push(line('wants', wants.join(', ')))
  if (introspected)
    lines.push(
      ...toolLines(introspected.listing, introspected.tools.tools).map((text, at) =>
        line(at === 0 ? 'tools' : '', text),
      ),
    )
  if (signIn) {
    for (const [label, text] of signInRows(signIn.explanation)) lines.push(line(label, text))
    lines.push(line('next', `mcp-bridge login ${signIn.loginName}`))
  }
  if (!runnable) lines.push(line('entry', JSON.stringify({ [name]: candidate.entry })))
  const { missing, remedy } = verdict
  if (missing !== '') lines.push(line('missing', missing))
  if (remedy !== '') lines.push(line('to allow it', remedy))
  return lines.join('\n')
}

/** The tools of a server, one line each. */
export function toolLines(
  listing: readonly { name: string; title?: string; description?: string }[],
  facts: ReadonlyMap<string, { hints: Readonly<Record<string, boolean>> }>,
): string[] {
  if (listing.length === 0) return ['none']
  return listing.map(({ name, title, description }) => {
    const says = facts.get(name)?.hints['readOnlyHint'] === true ? 'reads only' : ''
    const about = printable((description ?? title ?? '').replace(/\s+/g, ' '), 60)
    return `${printable(name, 40).padEnd(24)} ${says.padEnd(10)}  ${about}`.trimEnd()
  })
}

export function targetOf({ endpoint }: Pick<Candidate, 'endpoint'>): string {
  return endpoint.kind === 'http' ? endpoint.url : [endpoint.command, ...endpoint.args].join(' ')
}
