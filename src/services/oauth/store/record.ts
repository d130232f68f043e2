/** The record of one account at one server: its client, its tokens, and a sign-in in progress. */
import * as z from 'zod'

const moment = z.int().nonnegative()
const line = (max: number) => z.string().min(1).max(max)
const scopes = z.array(line(256)).max(200)

/** How an issuer knows the bridge. The secret of a configured client is not stored. */
const client = z.strictObject({
  issuer: line(2_048),
  how: z.enum(['configured', 'document', 'registered']),
  id: line(4_096),
  secret: line(4_096).optional(),
  method: z.enum(['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt', 'client_assertion']),
  /** The issuer expects the parts of Basic credentials unencoded. */
  plain: z.boolean().optional(),
  redirectUri: line(2_048).optional(),
  since: moment,
})

const token = z.strictObject({
  issuer: line(2_048),
  /** The parameter that was sent; absent if none was. */
  resource: line(2_048).optional(),
  access: line(16_384),
  type: z.enum(['bearer', 'dpop']),
  /** Milliseconds since 1970; absent if unknown. */
  expires: moment.optional(),
  refresh: line(16_384).optional(),
  asked: scopes,
  granted: scopes,
  since: moment,
})

/** The private key that tokens are bound to (RFC 9449). */
const proofKey = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: line(64),
  y: line(64),
  d: line(64),
})

/** A sign-in that a person may still finish, at its redirect URI. */
const pending = z.strictObject({
  issuer: line(2_048),
  resource: line(2_048).optional(),
  client,
  /** SHA-256 of the state. */
  state: line(64),
  verifier: line(128),
  redirectUri: line(2_048),
  asked: scopes,
  began: moment,
  /** When a browser was last opened; 0 for never. */
  opened: moment,
  /** When a response with this state was received. Further ones are ignored. */
  claimed: moment.optional(),
  /** Started on the page of the bridge: the digest of the browser's session there. Only that browser can finish it. */
  browser: line(64).optional(),
  /** The server takes only tokens that are bound to a key. */
  dpop: z.boolean().optional(),
})

/** A sign-in that a person may still finish on any device (RFC 8628). */
const device = z.strictObject({
  issuer: line(2_048),
  resource: line(2_048).optional(),
  client,
  code: line(4_096),
  /** What the person compares, or enters at `address`. */
  userCode: line(256),
  address: line(2_048),
  /** The code has to be entered there. */
  isEntered: z.boolean(),
  asked: scopes,
  began: moment,
  until: moment,
  /** Milliseconds between two questions to the issuer, and when the next one may be asked, by any process. */
  every: moment,
  next: moment,
  dpop: z.boolean().optional(),
})

/** Faults that a sign-in can end with, for processes that wait. */
export const ENDINGS = [
  'signInRefused',
  'signInRequired',
  'clientNeeded',
  'authUnsafe',
  'authFailed',
  'upstreamUnavailable',
] as const

export const recordSchema = z.strictObject({
  version: z.literal(1),
  endpoint: line(16_384),
  account: line(256),
  client: client.optional(),
  token: token.optional(),
  /** The key that the person has entered, where the server takes one in place of tokens. */
  apiKey: line(4_096).optional(),
  /** The key of the token, if that is of the type `dpop`. */
  key: proofKey.optional(),
  pending: pending.optional(),
  device: device.optional(),
  /** A process is renewing the token. Others wait until then. */
  lease: z.strictObject({ owner: line(64), until: moment }).optional(),
  /** The scopes requested last, and the issuer. */
  asked: z.strictObject({ issuer: line(2_048), scopes }).optional(),
  /** Scopes that the server required although they had been requested. */
  refused: z.strictObject({ scopes, since: moment }).optional(),
  /** How the last sign-in ended, if it failed. */
  ended: z
    .strictObject({
      fault: z.enum(ENDINGS),
      message: line(2_048),
      /** Seconds. */
      retryAfter: z.number().nonnegative().optional(),
      since: moment,
    })
    .optional(),
  /** When the last authorizations started. */
  began: z.array(moment).max(16).default([]),
})

export type TokenRecord = z.infer<typeof recordSchema>
export type Client = z.infer<typeof client>
export type Token = z.infer<typeof token>
export type ProofKey = z.infer<typeof proofKey>
export type Pending = z.infer<typeof pending>
export type PendingDevice = z.infer<typeof device>

/** The account of a record. */
export interface Holder {
  endpoint: string
  account: string
}
