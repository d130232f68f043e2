/** S5: the forms of secrets that the inspector and the log hide, as a table: of each form several spellings. */
import t from 'tap'
import { withoutCredentials } from '../../src/base/credentials/credentials.js'
import { FORMS, HIDDEN } from '../../src/base/credentials/forms.js'
import { redactor } from '../../src/inspector/redact.js'

const redact = redactor([])
const body = (length: number, alphabet = 'Ab3dE9fGh1Jk') => alphabet.repeat(20).slice(0, length)
const pem = (what: string) =>
  `-----BEGIN ${what}-----\n${`${body(64)}\n`.repeat(3)}${body(20)}==\n-----END ${what}-----`

/** Texts, what of each must not be shown, and what must stay. */
const TEXTS: Record<string, readonly [text: string, secret: string, stays?: string][]> = {
  'the later words of a value in quotes': [
    ['passphrase: "correct horse battery staple"', 'horse|battery|staple'],
    ["password='correct horse'; user=ada", 'horse', 'user=ada'],
    ['password=`correct horse`', 'horse'],
    ['{"password":"correct horse","user":"ada"} failed', 'horse', 'ada'],
    ['failed: {\\"password\\":\\"correct horse\\",\\"user\\":\\"ada\\"}', 'horse', 'ada'],
    ['failed: {\\\\\\"password\\\\\\": \\\\\\"correct \\\\\\\\\\" horse\\\\\\"}', 'horse'],
    ['password: "correct \\"horse\\" battery"', 'horse|battery'],
    ['password: "correct horse', 'horse'],
    ["{ password: 'correct horse', user: 'ada' }", 'horse', 'ada'],
    ['--password "correct horse" --user ada', 'horse', '--user ada'],
  ],
  'words without quotes': [
    ['passphrase: correct horse battery staple\nuser: ada', 'horse|staple', 'user: ada'],
    ['recovery phrase: correct horse battery', 'horse|battery'],
    ['mnemonic: correct horse battery', 'horse'],
    ['password: correct horse\nuser: ada', 'horse', 'user: ada'],
    ['  - password: correct horse', 'horse'],
  ],
  'names of several words': [
    ['API key: CANARY', 'CANARY'],
    ['the access token is unknown; secret key = CANARY', 'CANARY'],
    ['user[password]=CANARY&x=1', 'CANARY', 'x=1'],
    ['user%5Bpassword%5D=CANARY', 'CANARY'],
    ['redirect=https%3A%2F%2Fh%2F%3Faccess_token%3DCANARY', 'CANARY'],
    ['AccountName=x;AccountKey=CANARY==;EndpointSuffix=y', 'CANARY', 'EndpointSuffix'],
    ['Ocp-Apim-Subscription-Key: CANARY', 'CANARY'],
    ['password => CANARY', 'CANARY'],
    ['password := CANARY', 'CANARY'],
    ['<password>CANARY and more</password><user>ada</user>', 'CANARY|more', 'ada'],
    ['<add key="x" password="CANARY"/>', 'CANARY'],
  ],
  'a variable before a secret': [
    ['password=${X}CANARY', 'CANARY'],
    ['password="${X} CANARY"', 'CANARY'],
    ['Authorization: ${SCHEME} CANARY', 'CANARY'],
    ['Authorization: Bearer scope_CANARY', 'CANARY'],
  ],
  'flags and commands': [
    ['mytool --api-key CANARY --verbose', 'CANARY', '--verbose'],
    ['curl -u ada:CANARY https://host/x', 'CANARY', 'ada'],
    ['curl --user ada:CANARY https://host/x', 'CANARY'],
    ['machine host login ada password CANARY', 'CANARY'],
    ['export GITHUB_TOKEN=CANARY', 'CANARY'],
  ],
  'values that are objects or lists': [
    ['failed with {"credentials":{"user":"a}b","key":"CANARY"},"host":"h"}', 'CANARY', '"host":"h"'],
    ['tokens: [CANARY, CANARY] at host', 'CANARY', 'at host'],
  ],
  'headers as pairs, and lines of headers': [
    ['rawHeaders: ["Authorization","CANARY","Host","h"]', 'CANARY', '"Host","h"'],
    ["[['X-Api-Key', 'CANARY']]", 'CANARY'],
    ['Cookie: a="CANARY"; b=CANARY\nHost: h', 'CANARY', 'Host: h'],
    ['Authorization: Digest username="ada", response="CANARY"', 'CANARY'],
    ['authorization: ApiKey CANARY', 'CANARY'],
    ['Authorization: AWS4-HMAC-SHA256 Credential=CANARY/x, SignedHeaders=host, Signature=CANARY', 'CANARY'],
    ['DPoP CANARY.0123', 'CANARY'],
  ],
  'parameters of addresses': [
    ['GET /callback?code=CANARY&state=s', 'CANARY', 'state=s'],
    ['http://localhost/callback?state=s&code=CANARY', 'CANARY'],
    ['code=CANARY&grant_type=authorization_code', 'CANARY', 'grant_type'],
    ['grant_type=authorization_code&code_verifier=CANARY', 'CANARY'],
    [
      'https://b.s3.amazonaws.com/o?X-Amz-Credential=CANARY&X-Amz-Signature=CANARY&X-Amz-Expires=60',
      'CANARY',
      'Expires=60',
    ],
    ['https://s.googleapis.com/o?X-Goog-Signature=CANARY', 'CANARY'],
    ['https://a.blob.core.windows.net/c?sv=2024&sig=CANARY%2F%3D&se=1', 'CANARY', 'se=1'],
    ['https://maps.example/api?key=CANARY', 'CANARY'],
    ['https://d.cloudfront.net/x?Signature=CANARY&Key-Pair-Id=K', 'CANARY'],
    ['https://h/#access_token=CANARY&token_type=bearer', 'CANARY'],
    ['client_assertion=CANARY', 'CANARY'],
    ['SAMLResponse=CANARY', 'CANARY'],
    ['device_code: CANARY', 'CANARY'],
    ['postgres://ada:p@CANARY@host/db', 'CANARY', '@host/db'],
  ],
  'private keys': [
    ...[
      'PRIVATE KEY',
      'RSA PRIVATE KEY',
      'EC PRIVATE KEY',
      'OPENSSH PRIVATE KEY',
      'ENCRYPTED PRIVATE KEY',
      'PGP PRIVATE KEY BLOCK',
    ].map((what): [string, string, string] => [`before ${pem(what)} after`, 'Ab3dE9|BEGIN', 'after']),
    [pem('PRIVATE KEY').slice(0, 200), 'Ab3dE9'],
    [pem('PRIVATE KEY').replaceAll('\n', '\\n'), 'Ab3dE9'],
    [`key: ${pem('EC PRIVATE KEY')}\nhost: h`, 'Ab3dE9', 'host: h'],
    [body(64), 'Ab3dE9'],
  ],
  'tokens of known forms': [
    `ghs_${body(36)}`,
    `github_pat_${body(40)}`,
    `glpat-${body(20)}`,
    `xoxb-123456789012-${body(12)}`,
    `xapp-1-${body(20)}`,
    `sk-ant-api03-${body(40)}`,
    `sk-proj-${body(40)}`,
    `sk_live_${body(24)}`,
    `rk_test_${body(24)}`,
    `whsec_${body(32)}`,
    'ASIAIOSFODNN7EXAMPLE',
    `AIza${body(35)}`,
    `ya29.${body(40)}`,
    `GOCSPX-${body(28)}`,
    `1//0${body(40)}`,
    `hf_${body(34)}`,
    `npm_${body(36)}`,
    `pypi-${body(60)}`,
    `dckr_pat_${body(27)}`,
    `dop_v1_${body(64, '0123456789abcdef')}`,
    `SG.${body(22)}.${body(43)}`,
    `key-${body(32, '0123456789abcdef')}`,
    `123456789:${body(35)}`,
    `ntn_${body(40)}`,
    `lin_api_${body(40)}`,
    `figd_${body(40)}`,
    `ATATT3${body(60)}`,
    `shpat_${body(32, '0123456789abcdef')}`,
    `hvs.${body(40)}`,
    `dapi${body(32, '0123456789abcdef')}`,
    `glsa_${body(32)}`,
    `NRAK-${body(27, 'A1B2C3')}`,
    `gsk_${body(40)}`,
    `xai-${body(40)}`,
    `AGE-SECRET-KEY-1${body(58, 'QPZRY9X8')}`,
    `eyJ${body(20)}.${body(20)}.${body(30)}`,
    `https://hooks.slack.com/services/T0/B0/${body(24)}`,
  ].map((token): [string, string, string] => [`the key ${token} works`, token.slice(-12), 'works']),
}

for (const [what, rows] of Object.entries(TEXTS)) {
  t.test(`${what} are hidden in texts, in JSON, and in JSON within JSON`, async (t) => {
    for (const [text, secret, stays] of rows) {
      const pattern = new RegExp(secret.replace(/[.*+?^${}()[\]\\/]/g, '\\$&'))
      const spellings: Record<string, string> = {
        'a text': withoutCredentials(text),
        'a text, again': withoutCredentials(withoutCredentials(text)),
        'a body that is no JSON': redact(text).text,
        'a member': redact(JSON.stringify({ text, next: 1 })).text,
        'JSON within JSON': redact(JSON.stringify({ text: JSON.stringify({ text, next: 1 }) })).text,
        'JSON after words': redact(JSON.stringify({ text: `It said: ${JSON.stringify({ text })}` })).text,
        'cut off': redact(JSON.stringify({ text }).slice(0, -2)).text,
      }
      for (const [where, shown] of Object.entries(spellings)) {
        t.notMatch(shown, pattern, `${where}: ${text}`)
        t.match(shown, HIDDEN, `${where}: ${text}`)
        if (stays !== undefined && where.startsWith('a text')) t.ok(shown.includes(stays), `${stays} stays in ${shown}`)
      }
      JSON.parse(spellings['a member'] as string)
      JSON.parse((JSON.parse(spellings['JSON within JSON'] as string) as { text: string }).text)
    }
  })
}

/** JSON, in which CANARY is secret and `seen` is not. */
const MESSAGES: Record<string, readonly unknown[]> = {
  'pairs of names and values': [
    ['Authorization', 'CANARY'],
    [
      ['Authorization', 'CANARY'],
      ['Host', 'seen'],
    ],
    { rawHeaders: ['Host', 'seen', 'X-Api-Key', 'CANARY', 'Accept', 'seen'] },
    { headers: [['Cookie', ['CANARY', 'CANARY']]] },
    { entries: [['password', { a: 'CANARY' }]] },
    [['api_key', 'CANARY']],
    { args: ['seen', '--token', 'CANARY', '--host', 'seen'] },
    { args: ['--password', 'CANARY'] },
  ],
  'lists of names and values, in any order': [
    [{ value: 'CANARY', name: 'Authorization' }],
    [{ name: 'Authorization', value: 'CANARY' }],
    [{ value: 'CANARY', note: 'seen', key: 'X-Api-Key' }],
    [{ Value: 'CANARY', Name: 'DB_PASSWORD' }],
    [{ value: { a: ['CANARY'] }, name: 'password' }],
    [{ value: ['CANARY', { password: 'CANARY' }], more: { value: 'seen', name: 'city' }, name: 'password' }],
    [{ header: 'Cookie', v: 'CANARY' }],
    [{ default: 'CANARY', label: 'API key' }],
    [{ values: ['CANARY'], header: 'Authorization' }],
    [
      { value: 'seen', name: 'city' },
      { value: 'CANARY', name: 'token' },
    ],
  ],
  'codes of OAuth': [
    { code: 'CANARY', code_verifier: 'CANARY' },
    { grant_type: 'authorization_code', code: 'CANARY' },
    { code: 'CANARY', redirect_uri: 'seen' },
    { code: 'CANARY1ncLxlOBeZQQ' },
    { codeVerifier: 'CANARY' },
    { device_code: 'CANARY', user_code: 'CANARY' },
    { client_assertion: 'CANARY', note: 'seen' },
  ],
  'signatures and keys': [
    { sig: 'CANARY' },
    { 'X-Amz-Signature': 'CANARY', 'X-Amz-Credential': 'CANARY', 'X-Amz-Security-Token': 'CANARY' },
    { url: 'https://h/o?X-Amz-Signature=CANARY' },
    { accountKey: 'CANARY', 'Ocp-Apim-Subscription-Key': 'CANARY' },
    { auths: { host: { auth: 'CANARY012345=' } } },
    { user: 'seen', pass: 'CANARY', smtp_pass: 'CANARY', DB_PASS: 'CANARY' },
    { _auth: 'CANARY', cvv: 'CANARY', totp: 'CANARY', mnemonic: 'CANARY CANARY' },
  ],
}

for (const [what, messages] of Object.entries(MESSAGES)) {
  t.test(`${what} are hidden in JSON, however it is packed`, async (t) => {
    for (const message of messages) {
      const json = JSON.stringify(message)
      const spellings: Record<string, string> = {
        'a message': json,
        'a member': JSON.stringify({ params: { arguments: { x: message } } }),
        'with white space': JSON.stringify(message, null, 2),
        'JSON within JSON': JSON.stringify({ text: json }),
        'JSON within JSON within JSON': JSON.stringify({ text: JSON.stringify({ text: json }) }),
        'JSON after words': JSON.stringify({ text: `The answer: ${json}` }),
      }
      for (const [where, text] of Object.entries(spellings)) {
        const shown = redact(text).text
        t.notMatch(shown, /CANARY/, `${where}: ${text}`)
        t.equal(shown.split('seen').length, text.split('seen').length, `${where}: ${shown}`)
        JSON.parse(shown)
      }
      for (let length = 0; length < json.length; length++) {
        const shown = redact(json.slice(0, length)).text
        // A name that comes later has not arrived.
        if (!/^\[?\{"(?:value|v|values|default|Value|code)"/.test(json) && !json.startsWith('[{"value"'))
          t.notMatch(shown, /CANARY/, json.slice(0, length))
      }
    }
  })
}

t.test('shows values that only look like secrets', async (t) => {
  for (const message of [
    { required: ['password', 'user'], properties: { user: { type: 'string' } } },
    { enum: ['token', 'key'] },
    { error: { code: -32600, message: 'Invalid' } },
    { code: 'ENOENT' },
    { code: 'invalid_request_state' },
    { code: 'print(1)\nprint(2)' },
    { code: '404', status: 200 },
    { name: 'get_weather', value: 'Oslo', arguments: { city: 'Oslo' } },
    { tool: ['search', 'documents'] },
    { key: 'city', value: 'Oslo' },
    { sha: 'a'.repeat(64), signature: 'f(a, b)' },
    { auth: 'none', pass: 678, fail: 0 },
    { pass: '678' },
    ['read', 'write'],
    ['The token has expired', 'Sign in again'],
    { text: 'exit code=1, see https://host/a@b or a@b.example' },
    { text: 'max_tokens: 4096, progressToken=7777, the password is easy, "token" and "user"' },
    { text: '{"a":[1,2,{"b":null}],"c":"d"}' },
    { text: 'Use {braces} and [brackets], "quotes" and so on: 1, 2, 3' },
  ]) {
    const text = JSON.stringify(message)
    t.same(redact(text), { text, hidden: 0 })
    t.same(redact(JSON.stringify({ text })).hidden, 0, text)
  }
})

t.test('examines JSON within strings to a bounded depth, and hides deeper levels', async (t) => {
  let text = JSON.stringify({ list: ['Authorization', 'CANARY'] })
  for (let depth = 0; depth < 12; depth++) {
    text = JSON.stringify({ text })
    const shown = redact(text).text
    t.notMatch(shown, /CANARY/, `${depth + 1} levels`)
    JSON.parse(shown)
  }
})

t.test('each pattern of the table has a name, and matches only itself', async (t) => {
  t.ok(FORMS.length >= 15)
  for (const { what, form } of FORMS) {
    t.ok(what.length > 3)
    t.ok(form.global, what)
    t.notMatch('plain words, numbers 12345 and https://host/path?page=2', form, what)
  }
})

t.test('a hint that names the variable of a token, or a scheme, is shown as it is', async (t) => {
  const hints = [
    "require a token with --token '${TOKEN}' or --token ${TOKEN}",
    'set API_KEY=${KEY}, or password: ${DB_PASSWORD}',
    'it answered 401: Bearer realm="mcp", error="invalid_token", resource_metadata="https://example.com/x"',
    `curl -s http://127.0.0.1/mcp -H "authorization: Bearer $TOKEN" -d '{}'`,
    '"Bearer $env:TOKEN"',
    "--header 'Authorization: Bearer ${TOKEN}'",
    "--header 'Authorization: Bearer ${env:API_KEY}'",
    'Give it a credential with --header "Authorization: Bearer …" or "headers" in its entry.',
    'This bridge requires a token, as in "Authorization: Bearer <token>"',
    'Bearer tokens by the name of their principal',
    'It takes Basic authentication.',
  ]
  for (const text of hints) t.equal(redact(JSON.stringify({ text })).text, JSON.stringify({ text }), text)
  for (const secret of ['$ecret-0123', '${TOKEN}abc0123', 'tokens-0123456', '$TOKEN.abc0123'])
    t.match(redact(`{"text":"Bearer ${secret}"}`).text, /Bearer ‹hidden›/, secret)
})
