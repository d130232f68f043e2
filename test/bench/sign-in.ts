/** Stores of tokens, for measuring what it costs to be able to sign in. The servers take every token. */
import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { accountKey } from '../../src/oauth/client/account.js'
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
