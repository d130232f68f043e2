/** What is kept of one account with one server: its client, its tokens, and the sign-in that is under way. */
import * as z from 'zod'

const moment = z.int().nonnegative()
const line = (max: number) => z.string().min(1).max(max)
const scopes = z.array(line(256)).max(200)

/** How the bridge is known to an issuer. The secret of a client that the configuration has is not kept. */
const client = z.strictObject({
  issuer: line(2_048),
  how: z.enum(['configured', 'document', 'registered']),
  id: line(4_096),
  secret: line(4_096).optional(),
  method: z.enum(['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt', 'client_assertion']),
  /** The issuer takes the parts of Basic credentials as they are, rather than form-encoded. */
  plain: z.boolean().optional(),
  redirectUri: line(2_048).optional(),
  since: moment,
})

const token = z.strictObject({
  issuer: line(2_048),
  /** As it was sent; absent where none was. */
  resource: line(2_048).optional(),
  access: line(16_384),
  type: z.literal('bearer'),
  /** Absent where nobody has said. */
  expires: moment.optional(),
  refresh: line(16_384).optional(),
  asked: scopes,
  granted: scopes,
  since: moment,
})

/** A sign-in that a person may still finish. Whoever listens at its redirect URI can. */
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
  /** When a browser was last sent to the issuer; 0 for never. */
  opened: moment,
  /** When an answer with this state came in: there is no second one. */
  claimed: moment.optional(),
})

/** Faults that a sign-in can end with, for whoever waits for it in another process. */
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
  pending: pending.optional(),
  /** Somebody is getting another token, and is left alone until then. */
  lease: z.strictObject({ owner: line(64), until: moment }).optional(),
  /** Scopes that were asked for last, and of whom. */
  asked: z.strictObject({ issuer: line(2_048), scopes }).optional(),
  /** Scopes that the server wanted though they had been asked for. */
  refused: z.strictObject({ scopes, since: moment }).optional(),
  /** How the last sign-in ended, if not with a token. */
  ended: z
    .strictObject({
      fault: z.enum(ENDINGS),
      message: line(2_048),
      /** Seconds. */
      retryAfter: z.number().nonnegative().optional(),
      since: moment,
    })
    .optional(),
  /** When the last authorizations began. */
  began: z.array(moment).max(16).default([]),
})

export type TokenRecord = z.infer<typeof recordSchema>
export type Client = z.infer<typeof client>
export type Token = z.infer<typeof token>
export type Pending = z.infer<typeof pending>

/** Whose record it is. */
export interface Holder {
  endpoint: string
  account: string
}

export function emptyRecord({ endpoint, account }: Holder): TokenRecord {
  return { version: 1, endpoint, account, began: [] }
}

/** Whether there is anything in a record that is worth keeping. */
export function isEmpty({ client, token, pending, lease, asked, refused, ended, began }: TokenRecord): boolean {
  return [client, token, pending, lease, asked, refused, ended].every((one) => one === undefined) && began.length === 0
}
