/** The values of changes: found in the texts of both messages, as written. */
import t from 'tap'
import { movedTo, valueAt } from '../../src/inspector/changed-values.js'
import { pathOf } from '../../src/inspector/words.js'

t.test('finds a value by its JSON Pointer, with its exact bytes', async (t) => {
  const text = ' {"a":{"b/c":[1.0, {"~":12345678901234567890}],"":null}} '
  t.equal(valueAt(text, '/a/b~1c/0'), '1.0')
  t.equal(valueAt(text, '/a/b~1c/1/~0'), '12345678901234567890')
  t.equal(valueAt(text, '/a/'), 'null')
  t.equal(valueAt(text, ''), text.trim())
  for (const pointer of ['/b', '/a/b~1c/2', '/a/b~1c/x', '/a/b~1c/0/1']) t.equal(valueAt(text, pointer), undefined)
  t.equal(valueAt('{"a":{"b":"cut o', '/a/b'), undefined, 'a text that is cut off')
  t.equal(valueAt('no JSON', '/a'), undefined)
})

t.test('elements of a list move up when others are removed', async (t) => {
  const changes = [
    { at: '/result/tools/0', op: 'remove', rule: 'x' },
    { at: '/result/tools/2', op: 'remove', rule: 'x' },
    { at: '/result/tools/3/name', op: 'remove', rule: 'x' },
    { at: '/result/others/0', op: 'remove', rule: 'x' },
  ] as const
  t.equal(movedTo('/result/tools/3/title', changes), '/result/tools/1/title')
  t.equal(movedTo('/result/tools/1', changes), '/result/tools/0')
  t.equal(movedTo('/result/more/1', changes), '/result/more/1')
})

t.test('formats a path as people write it', async (t) => {
  const path = (at: string) => pathOf({ at, op: 'add', rule: 'x' })
  t.equal(path('/params/_meta/io.modelcontextprotocol~1protocolVersion'), 'params._meta.…/protocolVersion')
  t.equal(path('/result/tools/0/inputSchema/$ref'), 'result.tools[0].inputSchema.$ref')
  t.equal(path('/params/a b/c.d'), 'params["a b"]["c.d"]')
  t.equal(path(''), 'the whole message')
})
