/** Recognises the names of secrets: members, headers, parameters, variables and flags. */

/** Words of names of members whose values are hidden. */
const SECRET =
  /(?:^|_)(?:tokens?|secrets?|passwords?|passwd|passcode|pwd|authorization|credentials?|cookies?|session_?id|otp|totp|jwt|bearer|mnemonic)(?:_|$)/
/** The same for names without anything between their words. */
const JOINED =
  /password(?!less)|passphrase|passcode|(?:api|private|access|account|app|application|encryption|master|secret|service|shared|signing|ssh|storage|subscription)key|(?:access|auth|refresh|id|csrf|bearer|session)tokens?(?![a-z])|clientsecret|jsessionid|(?:seed|recovery|secret)phrase|(?:backup|recovery|device|user|verification)codes?$|(?:admin|db|ftp|mail|mysql|pg|proxy|redis|require|root|smtp|user)pass$/
/** Names that are secret only as a whole: of OAuth (RFC 7636, 7523), SAML, signed addresses, npm and cards. */
const WHOLE: ReadonlySet<string> = new Set([
  '_auth',
  'assertion',
  'client_assertion',
  'code_verifier',
  'cvc',
  'cvv',
  'saml_response',
  'sig',
  'x_amz_signature',
  'x_goog_signature',
])
/** Names with such a word whose values are not secret. */
const HARMLESS: ReadonlySet<string> = new Set([
  'progress_token',
  'max_tokens',
  'input_tokens',
  'output_tokens',
  'total_tokens',
])
/**
 * Names whose values are only sometimes secret: a `code` may be that of an error, `auth` the name of a method,
 * `pass` a count.
 */
const BY_VALUE: Readonly<Record<string, readonly RegExp[]>> = {
  code: [/^\d{6,8}$/, /^(?=.{0,200}\d)(?=.{0,200}[a-zA-Z])[\w.~+/=%-]{12,}$/],
  auth: [/^[\w+/=-]{12,}$/],
  pass: [/^(?!\d*$|true$|false$)/],
}
/** Names beside a `code` that make it one of OAuth. */
const OF_OAUTH: ReadonlySet<string> = new Set([
  'client_id',
  'client_secret',
  'code_verifier',
  'grant_type',
  'redirect_uri',
])
/** Names of secrets that often have several words. */
const PHRASE = /phrase$|mnemonic/
const PASSWORD = /pass_?(?:word|wd|code)$/
/** Headers whose value extends to the end of the line. */
const WHOLE_LINE = /^(?:proxy_)?authorization$|^(?:set_)?cookie$/

/** Whether a name marks its value as secret. */
export function isSecret(name: string): boolean {
  const words = wordsOf(name)
  return (SECRET.test(words) || WHOLE.has(words) || isJoined(words)) && !HARMLESS.has(words)
}

/** Whether two words together mark a value as secret, as in `API key`. */
export function areSecret(before: string, name: string): boolean {
  return isJoined(wordsOf(before) + wordsOf(name))
}

/** Whether a text, which may be cut off, is secret as the value of this name. */
export function isSecretValue(name: string, value: string, isCutOff: boolean): boolean {
  return Object.hasOwn(BY_VALUE, name) && (isCutOff || (BY_VALUE[name] ?? []).some((form) => form.test(value)))
}

/** Whether a `code` in the same object as this name is one of OAuth. */
export function isOfOAuth(name: string): boolean {
  return OF_OAUTH.has(wordsOf(name))
}

/** How far an unquoted value of this name extends: to the end of its line always, only at a line start, or never. */
export function reachOf(name: string): 'line' | 'words' | 'words at the start' | 'word' {
  const words = wordsOf(name)
  if (WHOLE_LINE.test(words)) return 'line'
  if (PHRASE.test(words)) return 'words'
  return PASSWORD.test(words) ? 'words at the start' : 'word'
}

/** Whether a text can be the name of the value after it, in a list of names and values. */
export function isSecretInList(text: string): boolean {
  return /^\S{1,60}(?: \S{1,20})?$/.test(text) && isSecret(text)
}

/** Whether a text is a flag whose value comes next. */
export function isSecretFlag(text: string): boolean {
  return /^--?[a-zA-Z][\w-]{0,60}$/.test(text) && isSecret(text)
}

/** Whether a name looks like that of a header. */
export function isHeader(name: string): boolean {
  return name.includes('-') || WHOLE_LINE.test(wordsOf(name))
}

function isJoined(words: string): boolean {
  return JOINED.test(words.replaceAll('_', ''))
}

/** The words of a name in lower case, with `_` between them. */
function wordsOf(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z]+/g, '_')
    .toLowerCase()
}
