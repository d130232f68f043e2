/** How a client shows at the token endpoint who it is (RFC 6749, 2.3; RFC 7523, 2.2). */
import { readFileSync } from 'node:fs'
import { importJWK, importPKCS8 } from 'jose'
import { type ClientAuth, ClientSecretPost, None, type PrivateKey, PrivateKeyJwt } from 'oauth4webapi'
import { Fault } from '../../protocol/fault.js'
import type { Client } from '../store/record.js'
import { readSecretFile } from './secret-file.js'
import type { ClientSettings } from './settings.js'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Ways to authenticate that are known here. */
export type Method = Client['method']

/** The best way for a client that the configuration has; `supported` is what the issuer says. */
export function configuredMethod(settings: ClientSettings, supported: readonly string[] | undefined): Method {
  if (settings.key) return 'private_key_jwt'
  if (settings.clientAssertionFile !== undefined) return 'client_assertion'
  if (settings.clientSecret === undefined) return 'none'
  return supported && !supported.includes('client_secret_basic') && supported.includes('client_secret_post')
    ? 'client_secret_post'
    : 'client_secret_basic'
}

/** Rejects with a Fault where what it takes cannot be read. */
export async function clientAuthOf(client: Client, settings: ClientSettings): Promise<ClientAuth> {
  const secret = (client.how === 'registered' ? client.secret : settings.clientSecret) ?? ''
  switch (client.method) {
    case 'none':
      return None()
    case 'client_secret_post':
      return ClientSecretPost(secret)
    case 'client_secret_basic':
      return (_server, { client_id }, _body, headers) => {
        headers.set('authorization', basic(client_id, secret, client.plain === true))
      }
    case 'private_key_jwt':
      return PrivateKeyJwt(await keyOf(settings))
    case 'client_assertion': {
      const assertion = readSecretFile(settings.clientAssertionFile ?? '', 'oauth.clientAssertionFile')
      return (_server, { client_id }, body) => {
        body.set('client_id', client_id)
        body.set('client_assertion_type', ASSERTION_TYPE)
        body.set('client_assertion', assertion)
      }
    }
  }
}

/** Whether Basic credentials differ by whether their parts are form-encoded, which not every issuer expects. */
export function dependsOnEncoding(client: Client, settings: ClientSettings): boolean {
  const secret = (client.how === 'registered' ? client.secret : settings.clientSecret) ?? ''
  return client.method === 'client_secret_basic' && basic(client.id, secret, true) !== basic(client.id, secret, false)
}

/** RFC 6749, 2.3.1: each part is form-encoded first. */
function basic(id: string, secret: string, plain: boolean): string {
  const part = (text: string) => (plain ? text : new URLSearchParams([['', text]]).toString().slice(1))
  return `Basic ${Buffer.from(`${part(id)}:${part(secret)}`).toString('base64')}`
}

async function keyOf({ key }: ClientSettings): Promise<PrivateKey> {
  const { file, alg, kid } = key as NonNullable<ClientSettings['key']>
  try {
    const text = readFileSync(file, 'utf8')
    const isJwk = text.trimStart().startsWith('{')
    const imported = isJwk ? await importJWK(JSON.parse(text), alg) : await importPKCS8(text, alg)
    if (imported instanceof Uint8Array) throw new TypeError('It is no private key')
    return kid === undefined ? { key: imported } : { key: imported, kid }
  } catch (error) {
    // The cause would show parts of the key.
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new Fault('authFailed', `The file of "oauth.key" has no private key for ${alg}${code}`)
  }
}
