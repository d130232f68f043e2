/** Authenticates a client at the token endpoint (RFC 6749, 2.3; RFC 7523, 2.2). */
import { importJWK, importPKCS8 } from 'jose'
import { type ClientAuth, ClientSecretPost, None, type PrivateKey, PrivateKeyJwt } from 'oauth4webapi'
import { Fault } from '../../../base/fault/fault.js'
import { readNamed } from '../../../base/net/readable.js'
import type { Client } from '../store/record.js'
import { readSecretFile } from './secret-file.js'
import type { ClientCredentials } from './settings.js'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** The supported methods. */
export type Method = Client['method']

/** The best method for a configured client. `supported` are the issuer's. */
export function configuredMethod(settings: ClientCredentials, supported: readonly string[] | undefined): Method {
  if (settings.key) return 'private_key_jwt'
  if (settings.clientAssertionFile !== undefined) return 'client_assertion'
  if (settings.clientSecret === undefined) return 'none'
  return supported && !supported.includes('client_secret_basic') && supported.includes('client_secret_post')
    ? 'client_secret_post'
    : 'client_secret_basic'
}

/**
 * The authentication of a client. `option` is the option that has its credentials. Rejects with a Fault if a secret or key
 * cannot be read.
 */
export async function clientAuthOf(client: Client, settings: ClientCredentials, option = 'oauth'): Promise<ClientAuth> {
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
      return PrivateKeyJwt(await keyOf(settings, `${option}.key`))
    case 'client_assertion': {
      const assertion = readSecretFile(settings.clientAssertionFile ?? '', `${option}.clientAssertionFile`)
      return (_server, { client_id }, body) => {
        body.set('client_id', client_id)
        body.set('client_assertion_type', ASSERTION_TYPE)
        body.set('client_assertion', assertion)
      }
    }
  }
}

/** Whether form-encoding changes the parts of the Basic credentials. Not every issuer expects it. */
export function dependsOnEncoding(client: Client, settings: ClientCredentials): boolean {
  const secret = (client.how === 'registered' ? client.secret : settings.clientSecret) ?? ''
  return client.method === 'client_secret_basic' && basic(client.id, secret, true) !== basic(client.id, secret, false)
}

/** RFC 6749, 2.3.1: each part is form-encoded first. */
function basic(id: string, secret: string, plain: boolean): string {
  const part = (text: string) => (plain ? text : new URLSearchParams([['', text]]).toString().slice(1))
  return `Basic ${Buffer.from(`${part(id)}:${part(secret)}`).toString('base64')}`
}

async function keyOf({ key }: ClientCredentials, option: string): Promise<PrivateKey> {
  const { file, alg, kid } = key as NonNullable<ClientCredentials['key']>
  try {
    // This also removes a byte order mark.
    const text = readNamed(file).toString('utf8').trim()
    const isJwk = text.startsWith('{')
    const imported = isJwk ? await importJWK(JSON.parse(text), alg) : await importPKCS8(text, alg)
    if (imported instanceof Uint8Array) throw new TypeError('Not a private key')
    return kid === undefined ? { key: imported } : { key: imported, kid }
  } catch (error) {
    // The cause could show parts of the key.
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new Fault('authFailed', `The file in "${option}" has no private key for ${alg}${code}`)
  }
}
