/** Options about discovered servers, and about publishing the bridge. */
import * as z from 'zod'
import { reachable, text, webAddress } from './values.js'

/** Options of the bridge: where to search, which hosts are allowed, and what to publish. */
export const discovery = {
  discover: z
    .array(text)
    .default([])
    .describe(
      'Where to find servers: a host, an address, a file of another program, files:, registry:<query> or stdio:<command>. Found servers stay in quarantine until they are trusted.',
    ),
  registry: webAddress('https://')
    .optional()
    .describe('Address of the registry. Default: https://registry.modelcontextprotocol.io.'),
  discoverAllow: reachable.describe('Private hosts, addresses and networks that discovery may reach.'),
  discoverLoopback: z
    .boolean()
    .default(false)
    .describe('Let discovery reach this machine, with or without TLS. For development.'),
  readOnlyTools: z
    .array(text.max(128))
    .default([])
    .describe('Globs of tools that may be called in quarantine if the server declares them read-only.'),
  trustStore: z
    .string()
    .optional()
    .describe(
      'File with keys, pins and approvals. Default: mcp-bridge/trust.json in the configuration folder of the user.',
    ),
  publish: z
    .strictObject({
      publisher: z
        .string()
        .regex(/^[a-z0-9](?:[a-z0-9.-]{0,126}[a-z0-9])?$/, 'has to be made of small letters, digits, "." and "-"')
        .optional()
        .describe('Name of the publisher. Default: the host of publicUrl.'),
      key: z
        .string()
        .optional()
        .describe(
          `Private key that signs the manifest, as PEM or JWK. Refer to it as \${file:path}. Default: not signed.`,
        ),
    })
    .optional()
    .describe(
      'Serve a manifest of the servers at /.well-known/mcp.json, an AI Catalog at /.well-known/ai-catalog.json, and server cards. Requires publicUrl. Default: none of them.',
    ),
}
