/** Translating names and URIs into those of a group, and back. */
import fc from 'fast-check'
import t from 'tap'
import { prefixOf } from '../../src/config/groups.js'
import { prefixed, prefixedLogger, splitName } from '../../src/middle/group/names.js'
import { mayExpandTo, prefixedUri, splitUri } from '../../src/middle/group/uris.js'

const prefix = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,31}$/)
/** Servers whose prefixes differ in more than case. */
const members = fc
  .uniqueArray(prefix, { minLength: 1, maxLength: 8, selector: (one) => one.toLowerCase() })
  .map((all) => all.map((one) => ({ prefix: one })))
const name = fc.oneof(
  fc.string(),
  fc.constantFrom('', '_', '__', '___', 'a__b', '__a', 'a_', 'a', 'search'),
  fc.string({ unit: 'grapheme' }),
)
const uri = fc.oneof(
  fc.webUrl(),
  fc.string(),
  fc.constantFrom(
    '',
    'ui://',
    'ui://a',
    'UI://a/b',
    'ui://a+b',
    'a+b://c',
    'file:///a.txt',
    '+',
    'ui:+',
    'a+ui://b',
    'ui:/',
  ),
)

t.test('a group name maps back to its server and the original name', async () => {
  fc.assert(
    fc.property(members, fc.nat(), name, (all, at, one) => {
      const member = all[at % all.length] as (typeof all)[number]
      const found = splitName(all, prefixed(member, one))
      return found?.member === member && found.name === one
    }),
  )
})

t.test('names of two servers never collide', async () => {
  fc.assert(
    fc.property(members, name, name, (all, one, other) => {
      const [first, second] = all
      return !first || !second || prefixed(first, one) !== prefixed(second, other)
    }),
  )
})

t.test("a name without a server's prefix does not belong to the server", async (t) => {
  const all = [{ prefix: 'a' }, { prefix: 'ab' }]
  for (const one of ['search', 'c__search', '__search', 'a_search', 'A__search', 'ab_', '', 'a'])
    t.equal(splitName(all, one), undefined, one)
  t.same(splitName(all, 'ab__a__b'), { member: all[1], name: 'a__b' })
})

t.test('a group URI maps back to its server and the original URI', async () => {
  fc.assert(
    fc.property(members, fc.nat(), uri, (all, at, one) => {
      const member = all[at % all.length] as (typeof all)[number]
      const found = splitUri(all, prefixedUri(member, one))
      return found?.member === member && found.uri === one
    }),
    { numRuns: 1_000 },
  )
})

t.test('a URI with its scheme in lower case maps back, too', async () => {
  fc.assert(
    fc.property(members, fc.nat(), fc.webUrl(), (all, at, one) => {
      const member = all[at % all.length] as (typeof all)[number]
      const given = prefixedUri(member, one).replace(/^[^:]*/, (scheme) => scheme.toLowerCase())
      return splitUri(all, given)?.member === member
    }),
  )
})

t.test('the URI of a user interface keeps its scheme, and no other URI gets it', async () => {
  fc.assert(
    fc.property(members, uri, (all, one) => {
      const isUi = (text: string) => text.toLowerCase().startsWith('ui://')
      return all.every((member) => isUi(prefixedUri(member, one)) === isUi(one))
    }),
  )
})

t.test('a prefixed URI can be parsed where the URI could', async () => {
  fc.assert(
    fc.property(members, fc.webUrl(), (all, one) => all.every((member) => URL.canParse(prefixedUri(member, one)))),
  )
})

t.test('every name of a server is a legal prefix', async () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\w.-]{1,64}$/), (server) => /^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(prefixOf(server))),
  )
})

t.test('a logger is named after its server, also one without a name', async (t) => {
  t.equal(prefixedLogger({ prefix: 'a' }, 'db'), 'a/db')
  t.equal(prefixedLogger({ prefix: 'a' }, undefined), 'a')
})

t.test('a URI matches the template it was expanded from', async () => {
  const value = fc.stringMatching(/^[a-z0-9]{0,8}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.stringMatching(/^[a-z:/?=]{0,6}$/), value)), value, (parts, end) => {
      const template = parts.map(([fixed]) => `${fixed}{x}`).join('') + end
      const made = parts.map(([fixed, one]) => fixed + one).join('') + end
      return mayExpandTo(template, made)
    }),
  )
})

const FITTING: [template: string, uri: string, fits: boolean][] = [
  ['file:///{path}', 'file:///a', true],
  ['file:///{path}', 'test://a', false],
  ['test://{a}/data', 'test://1/data', true],
  ['test://{a}/data', 'test://1/dat', false],
  ['test://a', 'test://a', true],
  ['test://a', 'test://ab', false],
  ['a{x}a', 'a', false],
  ['{x}', 'anything', true],
  ['{a}-{b}-{c}', '1-2', false],
]
for (const [template, one, fits] of FITTING)
  t.test(`${one} ${fits ? 'fits' : 'does not fit'} ${template}`, async (t) => {
    t.equal(mayExpandTo(template, one), fits)
  })

t.test('a template of many variables takes linear time', async (t) => {
  const template = `${'{a}x'.repeat(5_000)}y`
  t.equal(mayExpandTo(template, 'x'.repeat(100_000)), false)
})
