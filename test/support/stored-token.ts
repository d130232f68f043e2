/** A token that is there before the bridge starts, as a sign-in has left it. */
import { accountKey } from '../../src/services/oauth/client/account.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import type { Token } from '../../src/services/oauth/store/record.js'

export interface StoredToken extends Partial<Token> {
  access: string
  account?: string
}

/** Stores a token for the server at `url`. It needs no renewal unless `expires` says so. */
export async function storeToken(
  folder: string,
  url: string,
  { account = 'local', ...given }: StoredToken,
): Promise<void> {
  const holder = { endpoint: url, account }
  const { issuer = 'https://as.example', ...rest } = given
  await new FileStore({ folder }).change(accountKey(holder, { grant: 'code' }), holder, (record) => {
    const since = Date.now()
    record.token = { issuer, type: 'bearer', asked: [], granted: [], since, ...rest }
    record.client = { issuer, how: 'registered', id: 'client', method: 'none', since }
  })
}
