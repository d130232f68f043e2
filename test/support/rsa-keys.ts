/**
 * RSA keys of issuers. To make one takes a tenth of a second of CPU, and hundreds of tests start an issuer. Processes that run
 * tests of one bundle (.ci/tests.mjs) share them in its folder.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env } from 'node:process'

export interface RsaKeys {
  publicKey: KeyObject
  privateKey: KeyObject
}

/** More than are needed at once: no two issuers of a test have the same. */
const PAIRS = 8
const pairs: RsaKeys[] = []
let given = 0

/** The next pair of a few, in turn. */
export function rsaKeys(): RsaKeys {
  const at = given++ % PAIRS
  pairs[at] ??= sharedPair(at) ?? newPair(at)
  return pairs[at]
}

const fileOf = (at: number) => {
  const folder = env['MCP_BRIDGE_TEST_BUNDLE']
  return folder && join(folder, `rsa-${at}.pem`)
}

/** The pair that another process has made, if it has written it whole. */
function sharedPair(at: number): RsaKeys | undefined {
  try {
    const privateKey = createPrivateKey(readFileSync(fileOf(at) ?? ''))
    return { privateKey, publicKey: createPublicKey(privateKey) }
  } catch {
    return undefined
  }
}

function newPair(at: number): RsaKeys {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = fileOf(at)
  if (file) writeFileSync(file, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return pair
}
