/** What is hidden in texts that the inspector shows. */
import { assert as check, jsonValue, property, record, string } from 'fast-check'
import t from 'tap'
import { withoutCredentials } from '../../src/base/credentials/credentials.js'
import { HIDDEN } from '../../src/base/credentials/forms.js'
import { redactor } from '../../src/inspector/redact.js'

const redact = redactor([])

t.test('hides values of any type in members with secret names', async (t) => {
  for (const key of [
    'token',
    'access_token',
    'refreshToken',
    'API_KEY',
    'api-key',
    'apiKey',
    'client_secret',
    'Password',
    'userPassword',
    'authorization',
    'set-cookie',
    'privateKey',
    'sessionId',
    'credentials',
    'APIToken',
    'IDToken',
    'CSRFToken',
    'DBPassword',
    'AWSSecretKey',
    'HTTPAuthorization',
    'password2',
    'apiKey1',
    'client-secret2',
    'accesstoken',
    'authtoken',
    'clientsecret',
    'dbpassword',
    'JSESSIONID',
    'passWord',
    'pass_word',
    'passPhrase',
    'pass\u00adword',
    'pass\u200bword',
    'ｐａｓｓｗｏｒｄ',
    'passcode',
    'otp',
    'jwt',
    'bearer',
    'ssh_key',
    'signingKey',
    'AWS_ACCESS_KEY_ID',
  ]) {
    for (const value of ['"CANARY"', '{"a":["CANARY"]}', '["CANARY","CANARY"]', '12345']) {
      const { text, hidden } = redact(`{"a":1,${JSON.stringify(key)}: ${value},"z":[true]}`)
      t.notMatch(text, /CANARY|12345/, `${key} ${value}`)
      t.equal(hidden, 1)
      t.same(JSON.parse(text), { a: 1, [key]: HIDDEN, z: [true] })
    }
  }
})

t.test('shows values of names that only look secret', async (t) => {
  const names = 'progressToken maxTokens monkey tokenize secretary passwordless keys keyboard author bear spin pin'
  for (const key of names.split(' ')) {
    const text = `{"${key}":"shown"}`
    t.same(redact(text), { text, hidden: 0 })
  }
})

t.test('recognizes names in other spellings', async (t) => {
  t.notMatch(redact('{"pass\\u0077ord":"CANARY"}').text, /CANARY/)
})

t.test('hides secrets in JSON within strings, and credentials in texts', async (t) => {
  const inner = JSON.stringify({ user: 'a', password: 'CANARY', list: [{ token: 'CANARY' }] })
  const { text } = redact(JSON.stringify({ content: [{ type: 'text', text: inner }] }))
  t.notMatch(text, /CANARY/)
  t.match(text, /\\"user\\":\\"a\\"/)
  t.notMatch(redact('{"text":"curl -H \\"Authorization: Bearer CANARY.abc-def\\" x"}').text, /CANARY/)
})

t.test('hides credentials in texts for people', async (t) => {
  for (const text of [
    'Authorization: Bearer CANARY-0123456789',
    'authorization: token CANARY-0123456789\nnext line',
    'Cookie: a=CANARY; b=CANARY',
    'api_key=CANARY&x=1',
    'GET https://host/x?access_token=CANARY&x=1',
    'password: CANARY',
    '"clientSecret" : "CANARY"',
    'https://user:CANARY@host/x',
    'git clone https://CANARY@host/x',
    '--api-key=CANARY',
    'result: {"password":"CANARY"}',
    'Bearer CANARY!0123',
    'Bearer: CANARY-0123',
    'Bearer "CANARY-0123"',
  ]) {
    t.notMatch(withoutCredentials(text), /CANARY/, text)
    t.notMatch(redact(JSON.stringify({ text })).text, /CANARY/, text)
  }
  for (const text of [
    'max_tokens: 4096, progressToken=7777',
    'https://host/a@b',
    'the password is easy',
    'a@b.example',
  ])
    t.equal(withoutCredentials(text), text)
  t.match(withoutCredentials('token=CANARY and x=shown'), /and x=shown/)
  for (const known of [
    `ghp_${'a1'.repeat(18)}`,
    'xoxb-123456789012-abc',
    `sk-${'a1'.repeat(12)}`,
    'AKIAIOSFODNN7EXAMPLE',
  ])
    t.equal(withoutCredentials(`the key ${known} works`), `the key ${HIDDEN} works`)
  t.notMatch(withoutCredentials('eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl'), /eyJ|c2ln/)
})

t.test('hides values that a sibling names, in nested JSON, and in texts that are not JSON', async (t) => {
  t.same(
    redact('[{"name":"X-Api-Key","value":"CANARY"},{"name":"city","value":"Oslo"}]').text,
    `[{"name":"X-Api-Key","value":"${HIDDEN}"},{"name":"city","value":"Oslo"}]`,
  )
  const twice = JSON.stringify(JSON.stringify({ password: 'CANARY' }))
  t.notMatch(redact(JSON.stringify({ text: twice })).text, /CANARY/)
  t.notMatch(redact('Bearer CANARY-0123').text, /CANARY/)
  t.notMatch(redact('{"a": Bearer CANARY-0123, "b":1}').text, /CANARY/)
  t.notMatch(redact('{"x":"y" "password":"CANARY"}').text, /CANARY/, 'without a comma')
  t.notMatch(redact('{"x":{"y":1} "password":"CANARY"}').text, /CANARY/)
  t.equal(redact('{"a":12,"b":[true,null,-1e5]}').hidden, 0)
  const lines = 'QUJD'.repeat(20).replaceAll(/.{40}/g, '$&\n')
  t.match(redact(JSON.stringify({ data: lines })).text, /characters, sha256/)
})

t.test('the state of a request is shown as its size, binary content as size and digest', async (t) => {
  t.same(redact('{"requestState":"abcdef"}').text, '{"requestState":"‹sealed, 6 B›"}')
  t.same(redact('{"requestState":{"a":"CANARY"},"b":1}').text, '{"requestState":"‹sealed, 14 B›","b":1}')
  const { text } = redact(JSON.stringify({ type: 'image', data: 'QUJD'.repeat(100) }))
  t.match(text, /‹400 characters, sha256 [\da-f]{16}›/)
  t.equal(redact('{"data":"short"}').text, '{"data":"short"}')
})

t.test('shows no part of a secret in a text truncated anywhere', async (t) => {
  const whole =
    '{"params":{"arguments":{"password":"CANARY \\"quoted\\" \\u0041","note":"shown"},"token":{"a":"CANARY"}}}'
  for (let length = 0; length <= whole.length; length++) t.notMatch(redact(whole.slice(0, length)).text, /CAN/)
  t.notMatch(redact('{"text":"{\\"password\\":\\"CANARY').text, /CAN/)
})

t.test('hides values at configured pointers', async (t) => {
  const inBatch = redactor(['/params/**/iban'])
  t.notMatch(inBatch('[{"id":1},{"params":{"arguments":{"iban":"CANARY"}}}]').text, /CANARY/)
  const hide = redactor(['/params/arguments/iban', '/result/**/ssn', '/params/*/x', '/list/0', '/a~1b'])
  const text = hide(
    JSON.stringify({
      params: { arguments: { iban: 'CANARY', other: 'shown' }, q: { x: 'CANARY' } },
      result: { deep: [{ ssn: 'CANARY' }], ssn: ['CANARY'] },
      list: ['CANARY', 'shown'],
      'a/b': 'CANARY',
    }),
  ).text
  t.notMatch(text, /CANARY/)
  t.same(JSON.parse(text).list, [HIDDEN, 'shown'])
  t.equal(JSON.parse(text).params.arguments.other, 'shown')
})

t.test('bounds the steps of comparing any pattern with any path', async (t) => {
  const hide = redactor(['/**/a/**/a/**/a/**/a/**/b', '/*a*a*a*a*a*a*b', '**/ssn', '/x*y/*z', '/p*'])
  t.notMatch(
    hide(JSON.stringify({ deep: { ssn: 'CANARY' }, xany: {}, x_y: { az: 'CANARY' }, pq: ['CANARY'] })).text,
    /CANARY/,
  )
  t.match(hide(JSON.stringify({ xy: { zz_: 'seen' }, qp: 'seen', ssnx: 'seen' })).text, /seen.*seen.*seen/)
  const deep = `${'{"a":'.repeat(900)}1${'}'.repeat(900)}`
  t.equal(hide(deep).hidden, 0)
  t.equal(hide(JSON.stringify({ ['a'.repeat(1_900)]: 1 })).hidden, 0)
  t.equal(hide(JSON.stringify({ [`${'a'.repeat(1_900)}b`]: 1 })).hidden, 1)
})

t.test('however deep a text is, few characters are compared, and what is too deep is hidden', async (t) => {
  const name = 'n'.repeat(3_000)
  for (const [about, text] of [
    ['arrays', '['.repeat(16_384)],
    ['objects', '{"a":'.repeat(3_276)],
    ['a long name', `{"${name}":[${'1,'.repeat(6_000)}`],
    ['many values below many names', `${'{"abcdefgh":'.repeat(200)}[${'1,'.repeat(6_000)}`],
  ] as const) {
    let values = 0
    let longest = 0
    redact(text, (path) => {
      values++
      longest = Math.max(
        longest,
        path.reduce((length, name) => length + name.length + 1, 0),
      )
      return false
    })
    t.ok(values > 0 && values <= text.length && longest <= 2_000, `${about}: ${values} values, ${longest} characters`)
  }
  const deep = `${'['.repeat(2_000)}"CANARY"${']'.repeat(2_000)}`
  const { text, hidden } = redact(deep)
  t.notMatch(text, /CANARY/)
  t.equal(hidden, 1)
  JSON.parse(text)
})

t.test('returns a text without secrets unchanged, and hides a secret next to anything', async () => {
  check(
    property(jsonValue(), (value) => {
      const text = JSON.stringify({ v: value })
      const { text: shown, hidden } = redact(text)
      if (hidden === 0 && shown !== text) throw new Error(shown)
      JSON.parse(shown)
    }),
  )
  check(
    property(record({ before: jsonValue(), secret: string(), after: jsonValue() }), ({ before, secret, after }) => {
      const { text } = redact(JSON.stringify({ before, password: `CANARY${secret}`, after }))
      if (text.includes('CANARY')) throw new Error(text)
      JSON.parse(text)
    }),
  )
})
