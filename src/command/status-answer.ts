/** Asks one bridge for its state, for `mcp-bridge status`. */
import * as z from 'zod'
import type { StatusTarget } from './status-targets.js'
import { connect, type Environment, unreachable } from './tail-connection.js'

/** Time limit in milliseconds for the answer of a bridge. */
const ANSWERS = 5_000
/** Most bytes of an answer. */
const MAX_STATUS_ANSWER = 8 * 1024 * 1024

const text = z.string().optional()
const count = z.number().optional()
const address = z.looseObject({
  address: z.string(),
  state: z.string(),
  era: text,
  revision: text,
  why: text,
  sessions: count,
  calls: count,
  leaves: z.boolean().optional(),
})
const server = z.looseObject({
  state: z.string(),
  era: text,
  revision: text,
  why: text,
  next: text,
  sessions: count,
  calls: count,
  programs: count,
  memory: count,
  addresses: z.array(address).optional(),
  lastError: z.object({ at: z.string(), why: z.string() }).optional(),
})
const group = z.looseObject({
  state: z.string(),
  sessions: count,
  calls: count,
  servers: z.array(z.string()).optional(),
  missing: z.record(z.string(), z.string()).optional(),
})
const issuer = z.looseObject({ state: text, why: text })

/** What a bridge reports. With `/readyz` alone it is only the status. */
const reported = z.looseObject({
  status: z.string(),
  version: text,
  pid: count,
  since: text,
  memory: count,
  programs: count,
  workers: count,
  redis: text,
  origins: z.array(z.string()).optional(),
  issuers: z.record(z.string(), issuer).optional(),
  servers: z.record(z.string(), server).optional(),
  groups: z.record(z.string(), group).optional(),
})

export type Reported = z.infer<typeof reported>
export type ReportedAddress = z.infer<typeof address>

/** A bridge that was asked: what it reports, or why it does not, and what to do. */
export interface AskedBridge {
  address: string
  reported?: Reported
  error?: string
  next?: string
}

/** The state of a bridge; undefined if nobody named it, and no bridge answers there. */
export async function askStatus(
  { address, asked, isGuess }: StatusTarget,
  env: Environment,
): Promise<AskedBridge | undefined> {
  let refusal: number | undefined
  for (const target of asked) {
    let response: Awaited<ReturnType<typeof connect>>
    try {
      response = await connect(target, false, env, AbortSignal.timeout(ANSWERS))
    } catch (error) {
      return isGuess ? undefined : { address, error: unreachable(target, error), next: START }
    }
    const { statusCode = 0 } = response
    const found = statusCode === 200 || statusCode === 503 ? await reportIn(response) : undefined
    response.destroy()
    if (found)
      return {
        address: found.origins?.[0] ?? address,
        reported: found,
        ...(found.servers ? {} : { next: nextFor(refusal) }),
      }
    refusal ??= statusCode
  }
  if (isGuess && refusal !== 401) return undefined
  return { address, error: `it answered ${refusal}, and not with the state of a bridge`, next: nextFor(refusal) }
}

async function reportIn(response: AsyncIterable<Uint8Array>): Promise<Reported | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      bytes += chunk.length
      if (bytes > MAX_STATUS_ANSWER) return undefined
      chunks.push(chunk)
    }
    return reported.safeParse(JSON.parse(Buffer.concat(chunks).toString())).data
  } catch {
    return undefined
  }
}

export const START = 'To start a bridge: mcp-bridge --config mcp.json'

/** How to see the servers of a bridge that does not show them, by the status of its refusal. */
function nextFor(refusal: number | undefined): string {
  if (refusal === 401)
    return 'It requires a token: add --config with the configuration of the bridge, --token-file <file>, or the part of the address of its inspector after #.'
  return 'It shows its servers only at an address for operators: give that of its "admin", or start it with --admin http://127.0.0.1:9090.'
}
