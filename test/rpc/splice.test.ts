import fc from 'fast-check'
import t from 'tap'
import {
  duplicateKey,
  EMPTY,
  edit,
  has,
  isEmpty,
  keys,
  objectIn,
  parseObject,
  raw,
  textUnder,
  value,
  write,
} from '../../src/base/rpc/splice.js'

const name = fc.constantFrom('a', 'b', '_meta', '2', '1', '__proto__', 'constructor', 'é', '"', 'toString')
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value))
const object = fc
  .array(fc.tuple(name, json, fc.constantFrom('', ' ', '\n  ')), { maxLength: 6 })
  .map((members) => `{${members.map(([key, value, gap]) => `${gap}${JSON.stringify(key)}:${gap}${value}`).join(',')}}`)
const edits = fc.array(fc.tuple(name, fc.option(json, { nil: undefined })), { maxLength: 4 })

/** Applies edits to the parsed value: slow, and it changes bytes, but not the meaning. */
function modified(text: string, changes: [string, string | undefined][]): Map<string, unknown> {
  const parsed = JSON.parse(text) as object
  const members = new Map<string, unknown>(Object.entries(parsed))
  if (Object.hasOwn(parsed, '__proto__'))
    members.set('__proto__', Reflect.getOwnPropertyDescriptor(parsed, '__proto__')?.value)
  for (const [key, json] of changes) {
    if (json === undefined) members.delete(key)
    else members.set(key, JSON.parse(json))
  }
  return members
}

const comparable = (members: Map<string, unknown>) => JSON.stringify([...members].sort(([a], [b]) => (a < b ? -1 : 1)))
const change = (text: string, changes: [string, string | undefined][]) =>
  changes.reduce((payload, [key, json]) => edit(payload, Object.fromEntries([[key, json]])), parseObject(text))

t.test('an edited object means the same as after parse, change and stringify', async () => {
  fc.assert(
    fc.property(object, edits, (text, changes) => {
      return comparable(modified(write(change(text, changes)), [])) === comparable(modified(text, changes))
    }),
    { numRuns: 5_000 },
  )
})

t.test('an edit keeps all other bytes', async (t) => {
  const odd =
    '"big": 12345678901234567890,"one":1.0 , "keys":{"b":1,"2":2,"1":1,"b":2},"text":"\\u00e9\\/\\ud800","exp":1e400'
  const text = `{${odd}, "gone":1,"changed" : 2}`
  t.equal(
    write(edit(parseObject(text), { gone: undefined, changed: '3', added: '[4]' })),
    `{${odd},"changed" : 3,"added":[4]}`,
  )
  t.equal(write(parseObject(text)), text)
  t.equal(write(edit(parseObject(text), { absent: undefined })), text)
})

t.test('reading after an edit sees the edit', async () => {
  fc.assert(
    fc.property(object, edits, name, (text, changes, key) => {
      const edited = change(text, changes)
      const expected = modified(text, changes)
      const read = raw(edited, key)
      return (
        has(edited, key) === expected.has(key) &&
        (read === undefined ? undefined : JSON.stringify(JSON.parse(read))) === JSON.stringify(expected.get(key)) &&
        JSON.stringify(keys(edited).sort()) === JSON.stringify([...expected.keys()].sort()) &&
        isEmpty(edited) === (expected.size === 0)
      )
    }),
    { numRuns: 5_000 },
  )
})

t.test('edits leave the original payload unchanged', async (t) => {
  const before = parseObject('{"a":1}')
  const after = edit(before, { a: '2' })
  t.equal(write(before), '{"a":1}')
  t.equal(write(edit(after, { b: '3' })), '{"a":2,"b":3}')
  t.equal(write(after), '{"a":2}')
  t.equal(write(EMPTY), '{}')
})

t.test('the last of duplicate members counts, and an edit removes all of them', async (t) => {
  const twice = parseObject('{"a":1,"b":2,"a":3}')
  t.equal(value(twice, 'a'), 3)
  t.equal(duplicateKey(twice), 'a')
  t.equal(duplicateKey(parseObject('{"a":1,"\\u0061":3}')), 'a')
  t.equal(duplicateKey(parseObject('{"a":1,"b":{"a":1}}')), undefined)
  t.equal(write(edit(twice, { a: '4' })), '{"a":4,"b":2}')
  t.equal(write(edit(twice, { a: undefined })), '{"b":2}')
})

t.test('an error message can quote any value in the place of a name', async (t) => {
  const payload = parseObject('{"text":"a\\u0062","number":1.0,"object":{"toString":1,"valueOf":1},"nothing":null}')
  const keys = ['text', 'number', 'object', 'nothing', 'missing', 'constructor']
  t.same(
    keys.map((key) => textUnder(payload, key)),
    ['ab', '1.0', '{"toString":1,"valueOf":1}', 'null', 'undefined', 'undefined'],
  )
})

t.test('a nested object can be read and edited like any other', async (t) => {
  const outer = parseObject('{"in":{"x":1},"text":"{}"}')
  t.equal(value(objectIn(outer, 'in') ?? EMPTY, 'x'), 1)
  t.equal(objectIn(outer, 'text'), undefined)
  t.equal(objectIn(outer, 'absent'), undefined)
  const replaced = edit(outer, { in: '{"y":2}' })
  t.equal(value(objectIn(replaced, 'in') ?? EMPTY, 'y'), 2)
  t.equal(objectIn(edit(outer, { in: undefined }), 'in'), undefined)
})
