/** Which URIs patterns allow and deny, however a server may read them. */
import fc from 'fast-check'
import t from 'tap'
import { addresses } from '../../../src/middle/policy/choice/addresses.js'

const shown: [pattern: string, uri: string, isShown: boolean][] = [
  ['docs://*', 'docs://a', true],
  ['docs://*', 'docs://a/b.md?x=1#y', true],
  ['docs://*', 'docs://', true],
  ['docs://*', 'docs://item/{id}', true],
  ['docs://*', 'DOCS://a', false],
  ['docs://*', 'file:///docs://a', false],
  ['docs://a', 'docs://a', true],
  ['docs://a', 'docs://ab', false],
  ['docs://a', 'docs://b', false],
  ['docs://a?q=*', 'docs://a?q=1', true],
  ['docs://a%23b', 'docs://a%23b', true],
  ['file:///docs/*', 'file:///docs/a b', true],
  ['file:///docs/*', 'file:///docs/a%20b', true],
  ['file:///docs/*', 'file:///docs/../etc/passwd', false],
  ['file:///docs/*', 'file:///docs/%2e%2e/etc/passwd', false],
  ['file:///docs/*', 'file:///docs/%252e%252e/etc/passwd', false],
  ['file:///docs/*', 'file:///docs/..%2fetc/passwd', false],
  ['file:///docs/*', 'file:///docs/..\\etc\\passwd', false],
  ['file:///docs/*', 'file:///docs/x?/../../etc/passwd', false],
  ['file:///docs/*', 'file:///docs/x#/../../etc/passwd', false],
  ['file:///docs/*', 'file:///docs/\u2025/etc/passwd', false],
  ['file:///docs/*', 'file:///docs/a%00', false],
  ['file:///docs/*', 'file:///docs/a%c0%af', false],
  ['file://host/docs/*', 'file://host/docs/a', true],
  ['file://localhost/docs/*', 'file://localhost/docs/a', true],
  ['*.md', 'file:///a.md', true],
  ['*.md', 'file:///etc/passwd?.md', false],
  ['*.md', 'file:///etc/passwd#.md', false],
  ['*.md', 'file:///etc/passwd%00.md', false],
  ['*.md', 'file:///etc/passwd%23.md', false],
  ['http://a*', 'http://a@evil.example/', false],
  ['https://*.example.com/*', 'https://a.example.com/x', true],
  ['*://docs/*', 'my://docs/a', true],
  ['*', `docs://${'a'.repeat(2_041)}`, true],
  ['*', `docs://${'a'.repeat(2_042)}`, false],
  ['*', 'docs://a\u200bb', false],
  ['*', 'docs://%E9', false],
  ['*', '/docs/a', false],
  ['*', 'docs/a', false],
  ['*', 'C:\\docs\\a', false],
  ['*', '%2fdocs', false],
  ['*', '{+path}', false],
  ['*', 'urn:docs:a', true],
  ['docs://a/*', 'docs://a/b;v=1', true],
  ['docs://a/*', 'docs://a/..;/b', false],
]
t.test('shows a URI if a pattern allows it in every reading', async (t) => {
  for (const [pattern, uri, isShown] of shown)
    t.equal(addresses({ allow: [pattern], deny: [] })(uri), isShown, `${pattern} ${uri.slice(0, 60)}`)
})

const denied: [pattern: string, uri: string, isShown?: true][] = [
  ['docs://secret', 'docs://secret'],
  ['docs://secret', 'DOCS://Secret'],
  ['docs://secret', 'docs://secret/'],
  ['docs://secret', 'docs://secret?x'],
  ['docs://secret', 'docs://secret#x'],
  ['docs://secret', 'docs://secret%23x'],
  ['docs://secret', 'docs://secret%3Fx'],
  ['docs://secret', 'docs:secret'],
  ['docs://secret', 'docs:/secret'],
  ['docs://secret', 'docs:////secret'],
  ['docs://secret', 'docs://s%65cret'],
  ['docs://secret', 'docs://s%2565cret'],
  ['docs://secret', 'docs://ſecret'],
  ['docs://secret', 'docs://ｓecret'],
  ['docs://secret', 'docs://public/../secret'],
  ['docs://secret', 'docs://public/..\\secret'],
  ['docs://secret', 'docs://public%23/../secret'],
  ['docs://secret', 'docs://public?/../secret'],
  ['docs://secret', 'docs://public%2f..%2fsecret'],
  ['docs://secret', 'docs://./secret'],
  ['docs://secret', 'docs://../../secret'],
  ['docs://secret', 'docs://secret.'],
  ['docs://secret', 'docs://user@secret'],
  ['docs://secret', ' docs://secret '],
  ['docs://secret', 'docs://secret;v=1'],
  ['docs://secret', 'docs://public/..;/secret'],
  ['docs://secret', 'docs://secret%3bv=1'],
  ['docs://secret', 'docs://secrets', true],
  ['docs://secret', 'docs://a/secret', true],
  ['docs://secret*', 'docs://SECRETS/1'],
  ['file:///secret/*', 'file:///secret/a'],
  ['file:///secret/*', 'file:///secret'],
  ['file:///secret/*', 'file:/secret/a'],
  ['file:///secret/*', 'file:secret/a'],
  ['file:///secret/*', 'file://localhost/secret/a'],
  ['file:///secret/*', 'file://any.host/secret/a'],
  ['file:///secret/*', 'file:\\\\host\\secret\\a'],
  ['file:///secret/*', 'file:///secret%2fa'],
  ['file:///secret/*', 'file:///SECRET./a'],
  ['file:///secret/*', '/secret/a'],
  ['file:///secret/*', 'secret/a'],
  ['file:///c:/secret/*', 'C:\\secret\\a'],
  ['file:///secret/*', 'file:///public/a', true],
  ['http://h/x', 'http://user:word@h:80/x?y'],
  ['http://127.0.0.1/*', 'http://2130706433/x'],
  ['http://127.0.0.1/*', 'http://0x7f.1/x'],
  ['*.key', 'file:///a.key?.txt'],
  ['*.key', 'file:///a.KEY'],
]
t.test('hides a URI if a pattern denies it in any reading', async (t) => {
  for (const [pattern, uri, isShown = false] of denied)
    t.equal(addresses({ deny: [pattern] })(uri), isShown, `${pattern} ${uri}`)
})

t.test('deny wins over allow, and an empty list allows nothing', async (t) => {
  const isShown = addresses({ allow: ['docs://*'], deny: ['docs://b*'] })
  t.same(['docs://a', 'docs://b', 'file:///a'].map(isShown), [true, false, false])
  t.equal(addresses({ allow: [], deny: [] })('docs://a'), false)
})

t.test('hides a URI below a denied one in any spelling', async () => {
  const isShown = addresses({ deny: ['test://private/*'] })
  const escaped = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`
  const spelled = (text: string) =>
    fc
      .array(
        fc.constantFrom<(letter: string) => string>(String, escaped, (letter) => letter.toUpperCase()),
        {
          minLength: text.length,
          maxLength: text.length,
        },
      )
      .map((ways) => [...text].map((letter, at) => ways[at]?.(letter)).join(''))
  const gap = fc.constantFrom('/', '//', '/./', '\\', '%2f', '/x/../', '/x/y/../../', '/%2e/', '/a%2F..%2F')
  fc.assert(
    fc.property(
      fc.constantFrom('test:', 'TEST:'),
      gap,
      spelled('private'),
      gap,
      fc.webPath(),
      (scheme, one, name, two, path) => {
        const uri = `${scheme}/${one}${name}${two}${path.replace(/%[^%]*$/, '').replaceAll('..', '')}x`
        return !isShown(uri)
      },
    ),
    { numRuns: 2_000 },
  )
})

t.test('matches a pattern with many stars in linear steps', async (t) => {
  const isShown = addresses({ allow: [`${'*a'.repeat(100)}*b`], deny: [] })
  t.equal(isShown(`my:${'a'.repeat(2_000)}`), false)
})
