/** Options about clients: addresses to listen on, and who may connect. */
import * as z from 'zod'
import { wrongHost, wrongOrigin } from '../hosts.js'
import { browser, forwarded, issuers } from './identity.js'
import { entryName, scope, text, unscoped, webAddress } from './values.js'

const token = z.string().regex(/^[\x21-\x7e]{16,}$/, 'has to be 16 or more visible ASCII characters, without spaces')

/** An IP address, or a network with the length of its prefix. */
const addresses = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]
const PROXY = 'has to be an IP address or a network like 10.0.0.0/8'
const isAddress = (text: string) => addresses.some((one) => one.safeParse(text).success)
const proxy = z.string().superRefine(
  unless((text) => {
    if (isAddress(text)) return undefined
    const bare = text.trim().replace(/[[\]"']/g, '')
    return isAddress(bare) ? `${PROXY}: write "${bare}"` : PROXY
  }),
)

/** A check by what is wrong with a text. */
function unless(wrong: (text: string) => string | undefined) {
  return (text: string, context: z.RefinementCtx) => {
    const message = wrong(text)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  }
}

/** Options of the bridge: addresses, names and tokens. */
export const access = {
  listen: z
    .string()
    .default('http://127.0.0.1:8080/mcp')
    .describe(
      'Where clients connect: http://127.0.0.1:8080/mcp, https:// with "tls", unix:/run/mcp-bridge.sock, or stdio.',
    ),
  tls: z
    .strictObject({
      cert: text.describe('PEM file with the certificate, followed by its intermediate certificates.'),
      key: text.describe('PEM file with the private key, without a passphrase.'),
    })
    .optional()
    .describe(
      'Certificate for "listen" and "admin" with https://. If the files change, new connections use the new ones.',
    ),
  socketMode: z
    .string()
    .regex(/^0?[0-7]{3}$/, 'has to be three octal digits like 660')
    .default('600')
    .describe(
      'Permissions of unix sockets of "listen" and "admin", in octal. Whoever may write to a socket may connect to it.',
    ),
  admin: z
    .string()
    .optional()
    .describe(
      'A separate address for /healthz, /readyz, /status and /metrics, such as http://127.0.0.1:9090. Everybody who can reach it can read them. Default: none; they are at the address of "listen".',
    ),
  adminToken: z
    .string()
    .min(16, 'has to have 16 or more characters')
    .optional()
    .describe(
      'Token of who may add and remove servers at "admin" while the bridge runs, by PUT and DELETE of /servers/<name>. A server can be any program, so the token allows whatever the user of the bridge may do. Default: nobody may.',
    ),
  publicUrl: webAddress('http:// or https://')
    .optional()
    .describe(
      'Address at which clients reach the bridge if a proxy is in front of it, with the path prefix that the proxy removes.',
    ),
  allowedHosts: z
    .array(z.string().superRefine(unless(wrongHost)))
    .default([])
    .describe(
      'Hosts that requests may have in their Host header, in addition to the loopback names: tools.example.com with all ports, tools.example.com:8443, or *.example.com for all names below it.',
    ),
  allowedOrigins: z
    .array(
      z
        .url({
          error: ({ input }) => (typeof input === 'string' ? wrongOrigin(input) : undefined),
          abort: true,
        })
        .superRefine(unless(wrongOrigin)),
    )
    .default([])
    .describe('Origins of web pages that may call the bridge.'),
  trustedProxies: z
    .array(proxy)
    .default([])
    .describe(
      'Addresses and networks (10.0.0.0/8) of proxies in front of the bridge. For their requests, the bridge takes client address, host, protocol and removed path prefix from X-Forwarded-For, -Host, -Proto and -Prefix.',
    ),
  auth: z
    .strictObject({
      tokens: z
        .record(
          entryName
            .refine((name) => name !== 'anon' && name !== 'local', 'is reserved for callers without a token')
            .refine((name) => name !== 'inspector', 'is reserved for calls from the inspector')
            // The records of sign-in have this name for the account that all callers share.
            .refine((name) => name !== 'service', 'is reserved for the account of the bridge itself at servers'),
          z.union([
            token,
            z.strictObject({
              token: token.describe('The bearer token.'),
              scopes: z.array(scope).default([]).describe('Scopes of this principal.'),
            }),
          ]),
        )
        .optional()
        .describe(
          'Bearer tokens by the name of their principal; every HTTP request needs one. A token is a string, or an object with the token and the scopes of its principal.',
        ),
      issuers,
      forwarded,
      browser,
      scopes: z
        .array(scope)
        .default([])
        .describe('Scopes that every token of "issuers" must have. Clients are told to request them.'),
      unscoped,
      passthrough: z
        .boolean()
        .default(false)
        .describe(
          'Forward the Authorization header of clients to the server, which then authenticates them. Use it only if bridge and server are one resource for clients.',
        ),
    })
    .optional()
    .describe(
      'Authentication of HTTP clients: "tokens", "issuers" and "forwarded", alone or together, or "passthrough". Without it, everybody may call, as one principal.',
    ),
  allowUnauthenticated: z
    .boolean()
    .default(false)
    .describe('Listen beyond the loopback address without authentication.'),
}
