/** How a client and a server come to know each other, and how they part. */
import type { Test } from 'tap'
import { until } from '../support/eventually.js'
import { type Cell, only, paramsOf, REUSE, resultOf, SCRIPTED } from './cell.js'
import { ASKED, INFO, type Json } from './client.js'
import type { ClientPlan } from './clients.js'
import { crosses, type Pair, sharesSubscription, toldCapabilities, toldOffer } from './told.js'

/** A client that can do everything that there is, in the words of its era. */
export function ableClient({ client }: Pair): ClientPlan {
  return {
    capabilities: {
      elicitation: { form: {}, url: {} },
      sampling: { tools: {} },
      experimental: { 'com.example/x': { y: 1 } },
      extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
      ...(client.era === 'modern' ? { roots: {} } : { roots: { listChanged: true }, tasks: { list: {}, cancel: {} } }),
    },
  }
}

/** The server has capabilities, a name and instructions, and each client is told of them as its era has it. */
export async function opening(t: Test, cell: Cell): Promise<void> {
  const { pair, client, opened } = cell
  if (client.era === 'modern') {
    const { ttlMs, cacheScope } = opened.message.result ?? {}
    t.same({ ttlMs, cacheScope }, { ttlMs: 0, cacheScope: 'private' }, 'for how long it holds')
    t.same(resultOf(t, cell, opened, 'DiscoverResult'), toldModern(pair), 'what the client is told')
  } else {
    t.same(resultOf(t, cell, opened, 'InitializeResult'), toldLegacy(pair), 'what the client is told')
  }
  if (pair.server.era === 'modern') {
    only(t, cell, 'server/discover')
  } else {
    const named = cell.reached('initialize').map(paramsOf).filter(isOurs)
    const capabilities = toldCapabilities(pair, client.capabilities)
    t.same(named, [{ protocolVersion: ASKED, capabilities, clientInfo: INFO }], 'what the server is told')
  }
  if (client.era === 'modern') return
  const { message } = await client.request('ping').answer
  t.same(message.result, {}, 'a ping is answered with nothing')
  const pings = cell.reached('ping').length
  t.equal(pings, crosses(pair) ? 0 : 1, 'and goes to a server that knows such a thing')
}

function toldLegacy(pair: Pair): Json {
  return {
    protocolVersion: pair.server.era === 'legacy' ? pair.server.revision : ASKED,
    capabilities: toldOffer(pair),
    serverInfo: SCRIPTED,
    instructions: 'Be brief.',
  }
}

/** What a server that does not know the method is told to have said has its name in the body as well. */
function toldModern(pair: Pair): Json {
  return {
    supportedVersions: ['2026-07-28'],
    capabilities: toldOffer(pair),
    instructions: 'Be brief.',
    ...(crosses(pair) && { serverInfo: SCRIPTED }),
  }
}

function isOurs({ clientInfo }: Json): boolean {
  return (clientInfo as Json)['name'] === INFO.name
}

/** Whether a number has been the same for longer than what clients leave is kept. */
function unchanged(count: () => number): () => boolean {
  let last = Number.NaN
  let since = Date.now()
  return () => {
    const now = count()
    if (now !== last) since = Date.now()
    last = now
    return Date.now() - since > 2 * REUSE + 1_000
  }
}

/** A client that goes leaves nothing behind at the server that only it had a use for. */
export async function end(t: Test, cell: Cell): Promise<void> {
  const { server } = cell
  const isLegacy = cell.client.era === 'legacy'
  // Some of what is there for a client is there only a moment after it.
  if (isLegacy) await until(() => server.open() > 0, 'something is open')
  // What earlier clients have left ends a moment later.
  if (isLegacy) await until(unchanged(server.open), 'nothing opens or ends')
  const shares = sharesSubscription(cell.pair)
  const before = shares ? 0 : server.open()
  const client = await cell.connect()
  await client.request('tools/list').answer
  if (isLegacy) await until(() => server.open() > before, 'something more is open')
  await client.close()
  if (shares) await cell.client.close()
  await until(() => server.open() === before, 'it is over')
  t.equal(server.open(), before)
  t.same(client.complaints, [])
}
