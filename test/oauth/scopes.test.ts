import t from 'tap'
import { chooseScopes, includesAll, readScopes, type ScopeSources, union } from '../../src/services/oauth/scopes.js'

const nobody: ScopeSources = { configured: undefined, challenged: undefined, supported: undefined, offered: undefined }

t.test('scopes come from the configuration, else the challenge, else the resource, else there are none', async (t) => {
  const all = { ...nobody, configured: ['c'], challenged: ['h'], supported: ['s'] }
  t.same(chooseScopes(all), ['c'])
  t.same(chooseScopes({ ...all, configured: undefined }), ['h'])
  t.same(chooseScopes({ ...nobody, supported: ['s', 't'] }), ['s', 't'])
  t.same(chooseScopes(nobody), [])
  t.same(chooseScopes({ ...nobody, challenged: [], supported: ['s'] }), [], 'a challenge that names none decides')
})

t.test('requests offline_access only if the authorization server offers it and there are scopes', async (t) => {
  t.same(chooseScopes({ ...nobody, challenged: ['a'], offered: ['a', 'offline_access'] }), ['a', 'offline_access'])
  t.same(chooseScopes({ ...nobody, offered: ['openid', 'offline_access'] }), [])
  t.same(chooseScopes({ ...nobody, challenged: ['a', 'offline_access'], offered: ['a'] }), ['a'])
  t.same(chooseScopes({ ...nobody, supported: ['a', 'offline_access'] }), ['a'])
  t.same(chooseScopes({ ...nobody, challenged: ['offline_access'], offered: ['offline_access'] }), [])
  t.same(chooseScopes({ ...nobody, configured: ['offline_access'] }), ['offline_access'], 'but the operator may')
})

t.test('never adds openid by itself', async (t) => {
  t.same(chooseScopes({ ...nobody, offered: ['openid', 'email'] }), [])
  t.same(chooseScopes({ ...nobody, challenged: ['a'], offered: ['openid'] }), ['a'])
})

t.test('a step-up requests the earlier and the missing scopes', async (t) => {
  t.same(chooseScopes({ ...nobody, before: ['a', 'b'], challenged: ['c', 'a'], stepUp: true }), ['a', 'b', 'c'])
  t.same(chooseScopes({ ...nobody, configured: ['a'], before: ['a'], challenged: ['c'], stepUp: true }), ['a', 'c'])
  t.same(chooseScopes({ ...nobody, before: ['a'], supported: ['s'] }), ['a'], 'and so does signing in again')
})

t.test('leaves out an invalid scope', async (t) => {
  t.same(readScopes('  a  b\ta "c" d\\e f\u00e9 g '), ['a', 'b', 'g'])
  t.equal(readScopes(Array.from({ length: 200 }, (_, at) => `s${at}`).join(' ')).length, 100)
  t.same(union(['a'.repeat(257)], ['b']), ['b'])
  t.ok(includesAll(['a', 'b'], ['b']))
  t.notOk(includesAll(['a'], ['a', 'b']))
})
