/**
 * The secrets of the authorization servers of a test. What a test has a bridge write (logs, output, metrics, traces) is
 * searched for them when it ends, in every test that signs in.
 */
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, of what runs the tests
import { current } from '../../.ci/tests-current.mjs'

/** Parameters and members of OAuth messages that nobody but their recipient may see. */
const SECRET = [
  'access_token',
  'refresh_token',
  'client_secret',
  'client_assertion',
  'registration_access_token',
  'code',
  'code_verifier',
  'state',
  'subject_token',
  'assertion',
]
/** Shorter ones occur by chance. */
const MIN_LENGTH = 12

/** Files of tests share processes. A file is not searched for secrets of others: there are thousands at the end. */
const planted = { file: undefined as unknown, secrets: new Set<string>() }

function secretsOfFile(): Set<string> {
  const file: unknown = current.test
  if (planted.file !== file) Object.assign(planted, { file, secrets: new Set() })
  return planted.secrets
}

/** Remembers the secrets in a form, a query, or an answer. */
export function plant(message: URLSearchParams | Readonly<Record<string, unknown>>): void {
  const secrets = secretsOfFile()
  for (const name of SECRET)
    for (const value of message instanceof URLSearchParams ? message.getAll(name) : [message[name]])
      if (typeof value === 'string' && value.length >= MIN_LENGTH) secrets.add(value)
}

/** The secrets in a text, as they are, or encoded for an address. */
export function secretsIn(text: string): string[] {
  return [...secretsOfFile()].filter((one) => text.includes(one) || text.includes(encodeURIComponent(one)))
}

/** Fails the test, when it ends, if something that was written has a secret. */
export function watchForSecrets(t: Test, what: string, written: () => string): void {
  t.teardown(() => {
    const found = secretsOfFile().size === 0 ? [] : secretsIn(written())
    if (found.length > 0) throw new Error(`${what} has a secret: ${found.join(', ')}`)
  })
}
