/** Globs of names: they match whole names, and treat them as plain text, not as paths. */
import fc from 'fast-check'
import t from 'tap'
import { globs } from '../../src/middle/policy/globs.js'

const cases: [glob: string, name: string, matches: boolean][] = [
  ['write*', 'write_file', true],
  ['write*', 'write/file', true],
  ['*_admin', 'users/list_admin', true],
  ['*_admin', '../x_admin', true],
  ['*_admin', '.x_admin', true],
  ['*_admin', 'x_admin/', false],
  ['get_?', 'get_/', true],
  ['get_?', 'get_', false],
  ['a/*', 'a/b', true],
  ['a/*', 'a', false],
  ['{get,list}_*', 'list_x', true],
  ['{get,list}_*', 'put_x', false],
  ['[!w]*', 'read', true],
  ['[!w]*', 'write', false],
  ['[gl]*', 'list', true],
  ['get_\\*', 'get_*', true],
  ['get_\\*', 'get_x', false],
  ['!get_x', 'get_x', false],
  ['!get_x', 'other', false],
  ['!(get_*)', 'get_x', false],
  ['!(get_*)', 'put_x', true],
  ['./a', 'a', false],
  ['a', './a', false],
  ['a', 'a\n', false],
  ['a*', 'a\nb', true],
  ['get', 'GET', false],
  ['*', '', true],
  ['*', '.', true],
  ['**', '..', true],
  ['*', `${'a'.repeat(256)}`, true],
  ['*', `${'a'.repeat(257)}`, false],
]
t.test('a glob matches a whole name, in which no character is special', async (t) => {
  for (const [glob, name, matches] of cases)
    t.equal(globs([glob])(name), matches, `${glob} ${JSON.stringify(name.slice(0, 30))}`)
})

t.test('a name matches a list if it matches one glob of it', async (t) => {
  t.same(['a', 'bc', 'c'].map(globs(['a', 'b*'])), [true, true, false])
  t.equal(globs([])('a'), false)
})

t.test('a star matches any beginning, middle or end of a name', async () => {
  const part = fc.stringMatching(/^[\w./ -]{0,8}$/)
  fc.assert(
    fc.property(part, part, fc.string({ maxLength: 20, unit: 'binary' }), (first, last, rest) => {
      const matches = globs([`${first}*${last}`])
      return matches(first + rest + last) && matches(first + last)
    }),
  )
})
