/** The two SDKs as clients that sign in by their own means. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttpClient } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyHttpClient } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Test } from 'tap'
import { visit } from './person.js'

type Json = Record<string, unknown>

/** Where they have their people sent back. */
export const CALLBACK = 'http://127.0.0.1:9/callback'

/**
 * An SDK's own provider of tokens, whose person agrees to everything. `known` is how the authorization server knows the client:
 * by a document of it, or by a registration that was made beforehand; without either, it registers. `scope` is what the client
 * asks for by itself, if its SDK knows no scopes; `types` is what the person types into forms.
 */
export function provider(
  known: { document?: string; client?: Json; scope?: string; types?: Readonly<Record<string, string>> } = {},
) {
  const kept: Json = { client: known.client }
  let code: string | undefined
  return {
    get code() {
      return code
    },
    kept,
    provider: {
      redirectUrl: CALLBACK,
      state: () => 'state-of-the-test',
      clientMetadataUrl: known.document,
      clientMetadata: {
        client_name: 'test',
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      clientInformation: () => kept['client'],
      saveClientInformation: (client: unknown) => {
        kept['client'] = client
      },
      tokens: () => kept['tokens'],
      saveTokens: (tokens: unknown) => {
        kept['tokens'] = tokens
      },
      redirectToAuthorization: async (url: URL) => {
        if (known.scope !== undefined) url.searchParams.set('scope', known.scope)
        kept['asked'] = url.searchParams
        const person = { back: false, ...(known.types && { types: known.types }) }
        let { callback } = await visit(url.href, person)
        // The first address with a state may be that of another authorization server.
        while (callback && !callback.href.startsWith(CALLBACK)) callback = (await visit(callback.href, person)).callback
        code = callback?.searchParams.get('code') ?? undefined
        kept['iss'] = callback?.searchParams.get('iss') ?? undefined
      },
      saveCodeVerifier: (verifier: string) => {
        kept['verifier'] = verifier
      },
      codeVerifier: () => String(kept['verifier']),
      saveDiscoveryState: (state: unknown) => {
        kept['discovery'] = state
      },
      discoveryState: () => kept['discovery'],
    } as never,
  }
}

/** Connects a client that signs its person in first, and closes it with the test. */
export async function signedIn(
  t: Test,
  make: (typeof kits)[keyof typeof kits],
  url: string,
  person: ReturnType<typeof provider>,
): Promise<LegacyClient> {
  const first = make()
  const opening = first.transport(url, person.provider)
  await t.rejects(first.client.connect(opening as Transport), 'nobody is signed in yet')
  await (opening.finishAuth as (code: string, iss?: string) => Promise<void>).call(
    opening,
    person.code ?? '',
    person.kept['iss'] as string,
  )
  const { client, transport } = make()
  t.teardown(() => client.close())
  await client.connect(transport(url, person.provider) as Transport)
  return client
}

/** The last client of 2025-03-26, which knows no metadata of resources, and no scopes. */
export async function oldKit(): Promise<(typeof kits)['SDK v1']> {
  const { Client } = (await import(
    'sdk-1.10/client/index.js' as string
  )) as typeof import('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = (await import(
    'sdk-1.10/client/streamableHttp.js' as string
  )) as typeof import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  return () => ({
    client: new Client({ name: 'old', version: '1' }),
    transport: (url, authProvider) => new StreamableHTTPClientTransport(new URL(url), { authProvider }),
  })
}

export const kits = {
  'SDK v2': () => ({
    client: new ModernClient(
      { name: 'modern', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    ) as unknown as LegacyClient,
    transport: (url: string, authProvider: never) =>
      new ModernHttpClient(new URL(url), { authProvider }) as unknown as LegacyHttpClient,
  }),
  'SDK v1': () => ({
    client: new LegacyClient({ name: 'legacy', version: '1' }),
    transport: (url: string, authProvider: never) => new LegacyHttpClient(new URL(url), { authProvider }),
  }),
}
