/** Stores of tokens and an issuer of them, for measuring what it costs to be able to sign in. The servers take every token. */
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { SignJWT } from 'jose'
import { accountKey } from '../../src/services/oauth/client/account.js'
import { temporary } from './processes.js'

/** The path of a store without a token, for the bridge on this port. */
export function emptyStore(port: number): string {
  const folder = `${dirname(temporary(`tokens-${port}.txt`, ''))}/tokens-${port}`
  mkdirSync(folder, { mode: 0o700, recursive: true })
  return folder
}

/** The path of a store with a token for a server that is valid for an hour. */
export function storeWithToken(port: number, server: string): string {
  const folder = emptyStore(port)
  const since = Date.now()
  const token = { issuer: 'https://as.example', access: 'x'.repeat(1_000), type: 'bearer', expires: since + 3_600_000 }
  const holder = { endpoint: server, account: 'local' }
  const record = { version: 1, ...holder, token: { ...token, asked: [], granted: [], since }, began: [] }
  const name = `${accountKey(holder, { grant: 'code' })}.json`
  chmodSync(temporary(`tokens-${port}/${name}`, JSON.stringify(record)), 0o600)
  return folder
}

/** An identity provider, and a token of it. */
export interface Issuer {
  issuer: string
  jwksUri: string
  token: string
}

/** Where nobody is asked for a token. */
export const NO_ISSUER: Issuer = { issuer: 'https://as.example', jwksUri: 'https://as.example/jwks', token: '' }

/** Starts an issuer with one key, and has it sign a token for `audience`. It runs as long as this process. */
export async function startIssuer(audience: string): Promise<Issuer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256', use: 'sig' }]
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }))
  })
  await once(server.listen(0, '127.0.0.1').unref(), 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const token = await new SignJWT({ scope: 'mcp' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k', typ: 'at+jwt' })
    .setIssuer(issuer)
    .setSubject('ada')
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('6h')
    .sign(privateKey)
  return { issuer, jwksUri: `${issuer}/jwks`, token }
}
