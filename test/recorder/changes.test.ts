/** What edits change in a received text: as places, and as bytes. */
import t from 'tap'
import { sourceOfBytes } from '../../src/base/rpc/source.js'
import {
  edit,
  mapElements,
  objectIn,
  type Payload,
  parseObject,
  parseSource,
  wire,
  write,
} from '../../src/base/rpc/splice.js'
import { type Collected, changesIn, type Op, Place } from '../../src/inspector/recorder/changes.js'

const isUtf8 = () => true
const RECEIVED = '{ "a" : 1.0, "list":[ {"x":1} , 7, {"x":2},{"x":3} ], "_meta": {"k/~": {}, "gone":null} }'
/** Changes as texts, with their places. */
class Found implements Collected<Found> {
  readonly all: readonly { op: Op; place: Place }[]

  constructor(all: Found['all'] = []) {
    this.all = all
  }

  with(op: Op, place: Place): Found {
    return new Found([...this.all, { op, place }])
  }
}
const found = (payload: Payload, place = new Place()) => changesIn(payload, place, new Found()).all
const changes = (payload: Payload) => found(payload).map(({ op, place }) => `${op} ${place.at}`)
const nested = (payload: Payload, key: string) => objectIn(payload, key) ?? parseObject('{}')

t.test('edits in a nested object are rendered with the rest, and are changes of their own', async (t) => {
  const before = parseObject(RECEIVED)
  const meta = edit(nested(before, '_meta'), { gone: undefined, added: '1' })
  const after = edit(before, { _meta: edit(meta, { 'k/~': edit(nested(meta, 'k/~'), { y: '2' }) }) })
  t.equal(write(after), '{"a" : 1.0, "list":[ {"x":1} , 7, {"x":2},{"x":3} ],"_meta": {"k/~": {"y":2},"added":1}}')
  t.same(changes(after), ['remove /_meta/gone', 'add /_meta/added', 'add /_meta/k~1~0/y'])
  const message = new Place()
  const [first] = found(after, message.member('params'))
  t.match(first, { op: 'remove', place: { at: '/params/_meta/gone', path: '/params/_meta/gone' } })
  t.equal(first?.place, message.member('params').member('_meta').member('gone'), 'equal places are one object')
})

t.test('elements of a list have their positions from when they were received', async (t) => {
  const before = parseObject(RECEIVED)
  const x = (one: Payload) => write(one).at(-2)
  const fewer = edit(before, { list: mapElements(before, 'list', (one) => (x(one) === '1' ? [] : one)) })
  const after = edit(fewer, {
    list: mapElements(fewer, 'list', (one) => (x(one) === '2' ? edit(one, { x: '"two"' }) : parseObject('{"new":1}'))),
  })
  t.equal(write(objectIn(edit(parseObject('{}'), { o: after }), 'o') ?? after), write(after))
  t.match(write(after), '"list":[ 7, {"x":"two"},{"new":1} ]')
  t.same(changes(after), ['remove /list/0', 'replace /list/2/x', 'replace /list/3'])
  t.equal(found(after)[2]?.place.path, '/list/*')
})

t.test('a list in which one element became several is replaced as a whole', async (t) => {
  const before = parseObject(RECEIVED)
  const after = edit(before, { list: mapElements(before, 'list', (one) => [one, one]) })
  t.match(write(after), '[ {"x":1},{"x":1} , 7, {"x":2},{"x":2},{"x":3},{"x":3} ]')
  t.same(changes(after), ['replace /list'])
})

t.test('a member that is removed and restored with the same bytes is no change', async (t) => {
  const before = parseObject(RECEIVED)
  const bare = edit(before, { a: undefined, _meta: undefined, none: undefined })
  const after = edit(bare, { a: '1.0', _meta: '{"k/~": {}, "gone":null}' })
  t.same(changes(after), [])
  t.same(changes(edit(bare, { a: '1' })), ['replace /a', 'remove /_meta'])
})

t.test('nested edits of a large text are sent as bytes', async (t) => {
  const long = 'x'.repeat(40_000)
  const text = `{"list":[{"long":"${long}","x":1}],"other":"${long}"}`
  const before = parseSource(sourceOfBytes([Buffer.from(text)], isUtf8))
  const after = edit(before, { list: mapElements(before, 'list', (one) => edit(one, { x: undefined })) })
  const pieces = wire(after)
  t.ok(Array.isArray(pieces) && pieces.some((piece) => typeof piece !== 'string'))
  t.equal(
    Buffer.concat((pieces as (string | Uint8Array)[]).map((piece) => Buffer.from(piece as string))).toString(),
    text.replace(',"x":1', ''),
  )
  t.equal(write(after), text.replace(',"x":1', ''))
  t.same(changes(after), ['remove /list/0/x'])
})
