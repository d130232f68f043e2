/** Credentials in texts, and names of what is secret. Logs and the inspector show neither. */

/** Stands in place of a hidden value. */
export const HIDDEN = '‹hidden›'

/** Words of names of members whose values are hidden. */
const SECRET =
  /(?:^|_)(?:tokens?|secrets?|passwords?|passwd|passcode|pwd|authorization|credentials?|cookies?|session_?id|otp|jwt|bearer)(?:_|$)/
/** The same for names without anything between their words. */
const JOINED =
  /password(?!less)|passphrase|passcode|(?:api|private|access|secret|signing|encryption|ssh)key|(?:access|auth|refresh|id|csrf|bearer|session)tokens?(?![a-z])|clientsecret|jsessionid/
/** Names that have such a word, and say nothing secret. */
const HARMLESS = new Set(['progress_token', 'max_tokens', 'input_tokens', 'output_tokens', 'total_tokens'])
/** Credentials within a text: after a scheme of HTTP, in the line of a header, before the host of an address, or known by their form. */
const SCHEME = /\b(Bearer|Basic)((?:\s|%20|:){1,9}["']?)[^\s"',;<>]{6,}/gi
const KNOWN =
  /\b(?:gh[a-z]_[A-Za-z\d]{20,}|github_pat_\w{20,}|xox[a-z]-[\w-]{10,}|sk-[\w-]{20,}|AKIA[A-Z\d]{16}|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]{0,2000})?)/g
const HEADER = /(?<![\w-])((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s{0,9}[:=]\s{0,9}["']?)[^\r\n"']{3,}/gi
const USER = /(\/\/)[^\s/@"'<>]{1,300}@/g
/** A word before a value, and the value. */
const NAME = /(?<![\w-])([\w-]{1,60})["']?\s{0,9}[=:]\s{0,9}["']?/g
const VALUE = /[^\s"'&;,<>{}()[\]]{3,}/y

/** A text for people with the credentials in it hidden. */
export function withoutCredentials(text: string): string {
  return withoutValues(
    text
      .replace(SCHEME, `$1$2${HIDDEN}`)
      .replace(HEADER, `$1$2${HIDDEN}`)
      .replace(USER, `$1${HIDDEN}@`)
      .replace(KNOWN, HIDDEN),
  )
}

/** Hides the values after words that say that they are secret, as in `password: abc` and `token=abc`. */
function withoutValues(text: string): string {
  let out = ''
  let copied = 0
  for (const { 0: before, 1: name = '', index } of text.matchAll(NAME)) {
    const start = index + before.length
    if (start < copied || !isSecret(name) || text.startsWith(HIDDEN, start)) continue
    VALUE.lastIndex = start
    if (!VALUE.test(text)) continue
    out += text.slice(copied, start) + HIDDEN
    copied = VALUE.lastIndex
  }
  return out + text.slice(copied)
}

/** Whether the name of a value says that it is secret. */
export function isSecret(key: string): boolean {
  const words = key
    .normalize('NFKC')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z]+/g, '_')
    .toLowerCase()
  return (SECRET.test(words) || JOINED.test(words.replaceAll('_', ''))) && !HARMLESS.has(words)
}
