/** Names of servers that can be part of a path. */
import t from 'tap'
import { servedNames } from '../../src/config/formats/served-names.js'

const named = (...given: string[]) => [...servedNames(given).values()]

t.test('a server in another script has a name of its own, whatever other servers there are', (t) => {
  const both = named('日本', '中国')
  t.same(both, ['server-65e5672c', 'server-4e2d56fd'])
  t.same(named('中国', '日本'), both.toReversed())
  for (const [at, name] of ['日本', '中国'].entries()) t.same(named(name), [both[at]])
  t.same(named('天気 weather'), ['weather-59296c17'])
  t.same(named('für', 'fur'), ['f-r-fc', 'fur'])
  t.equal(new Set(named(...['а', 'б', 'в'].map((letter) => letter.repeat(60)))).size, 3)
  for (const name of named('日'.repeat(100), `${'x'.repeat(80)}日`)) t.match(name, /^[\w.-]{1,64}$/)
  t.end()
})

t.test('names that are valid stay, and other signs become dashes', (t) => {
  t.same(named('a.b', 'a b', 'My Server!', '???'), ['a.b', 'a-b', 'My-Server', 'server'])
  t.end()
})
