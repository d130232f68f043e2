/** Texts that are no JSON, no UTF-8, no message, or a message in a shape that costs more than it looks. */
import { type Era, type Text, text } from './input.js'
import { callOf, messagesOf } from './messages.js'
import { below, oneOf, type Random } from './random.js'

const refused = { want: 'refused' } as const

export function* texts(era: Era): Iterable<Text> {
  const good = JSON.stringify(callOf(era))
  const wrong: [name: string, body: string | Uint8Array][] = [
    ['nothing', ''],
    ['spaces', '   '],
    ['text after it', `${good}x`],
    ['a bracket after it', `${good}}`],
    ['another one after it', `${good} ${good}`],
    ['a comment', `/* */${good}`],
    ['a hash', `#${good}`],
    ['single quotes', good.replaceAll('"', "'")],
    ['no quotes around keys', good.replaceAll(/"(\w+)":/g, '$1:')],
    ['a comma at the end', good.replace(/\}$/, ',}')],
    ['two commas', good.replace(',', ',,')],
    ['no colon', good.replace(':', ' ')],
    ['an equals sign', good.replace(':', '=')],
    ['NaN', good.replace('"here"', 'NaN')],
    ['Infinity', good.replace('"here"', 'Infinity')],
    ['undefined', good.replace('"here"', 'undefined')],
    ['a hexadecimal number', good.replace('"here"', '0x10')],
    ['a leading zero', good.replace('"here"', '01')],
    ['a plus', good.replace('"here"', '+1')],
    ['a dot and no digits', good.replace('"here"', '1.')],
    ['an exponent and no digits', good.replace('"here"', '1e')],
    ['True', good.replace('"here"', 'True')],
    ['an escape that there is not', good.replace('here', 'h\\xere')],
    ['an escape that is cut off', good.replace('here', 'h\\u12')],
    ['a control character in a text', good.replace('here', 'h\u0001ere')],
    ['a tab in a text', good.replace('here', 'h\tere')],
    ['a NUL at the end', `${good}\0`],
    ['a NUL at the start', `\0${good}`],
    ['a form feed', `\f${good}`],
    ['a no-break space', `\u00a0${good}`],
    ['UTF-16', Buffer.from(good, 'utf16le')],
    ['UTF-16 with a mark', Buffer.from(`\ufeff${good}`, 'utf16le')],
    ['Latin-1', Buffer.from(good.replace('here', 'hére'), 'latin1')],
    ['overlong UTF-8', within(good, [0xc0, 0xaf])],
    ['an overlong NUL', within(good, [0xc0, 0x80])],
    ['a surrogate in UTF-8', within(good, [0xed, 0xa0, 0x80])],
    ['beyond Unicode', within(good, [0xf4, 0x90, 0x80, 0x80])],
    ['half a character', within(good, [0xe2, 0x82])],
    ['a byte that continues nothing', within(good, [0x80])],
    ['0xFF', within(good, [0xff, 0xfe])],
    ['HTML', '<html><body>hello</body></html>'],
    ['XML-RPC', '<?xml version="1.0"?><methodCall><methodName>x</methodName></methodCall>'],
    ['a form', 'jsonrpc=2.0&id=1&method=tools%2Flist'],
    ['gzip', Buffer.from('1f8b08000000000000034b4c4a0600c241243503000000', 'hex')],
    ['500 opening brackets', '['.repeat(500)],
    ['100,000 opening brackets', '['.repeat(100_000)],
    ['100,000 opening braces', '{"a":'.repeat(100_000)],
    ['a quote that is not closed', `{"jsonrpc":"${'x'.repeat(20_000)}`],
    ['true', 'true'],
    ['null', 'null'],
    ['a number', '7'],
    ['a text', '"tools/list"'],
    ['an empty object', '{}'],
    ['an object in an object', `{"message":${good}}`],
  ]
  for (const [name, body] of wrong) yield text('texts', name, body, refused)
  for (let end = 1; end < good.length; end += Math.ceil(good.length / 40))
    yield text('texts', `cut off after ${end} characters`, good.slice(0, end), refused)
}

/** A message with bytes in the middle of one of its texts. */
function within(good: string, bytes: number[]): Buffer {
  const at = good.indexOf('here')
  return Buffer.concat([Buffer.from(good.slice(0, at)), Buffer.from(bytes), Buffer.from(good.slice(at))])
}

/** Batches, and what is like one. */
export function* batches(era: Era): Iterable<Text> {
  const good = JSON.stringify(callOf(era))
  const notification = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 0 } })
  const all: [name: string, body: string, refusedByAll?: boolean][] = [
    ['nothing', '[]', true],
    ['one', `[${good}]`],
    ['the same id twice', `[${good},${good}]`],
    ['101', `[${Array(101).fill(good).join()}]`],
    ['5,000 notifications', `[${Array(5_000).fill(notification).join()}]`],
    ['ones', '[1,1,1]', true],
    ['20,000 ones', `[${'1,'.repeat(20_000)}1]`, true],
    ['nulls', '[null,null]', true],
    ['batches', `[[${good}]]`, true],
    ['an answer in the middle', `[${good},{"jsonrpc":"2.0","id":1,"result":{}}]`],
    ['initialize in the middle', `[${good},{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]`],
    ['text in the middle', `[${good},"x"]`],
    ['half of it', `[${good},`, true],
  ]
  for (const [name, body, isWrong] of all) yield text('batches', name, body, { want: isWrong ? 'refused' : 'any' })
}

/** Shapes that ask for work out of proportion, and names that mean something to JavaScript. */
export function* shapes(era: Era): Iterable<Text> {
  const good = JSON.stringify(callOf(era))
  const withArguments = (json: string) => good.replace('"arguments":{', `"arguments":{"x":${json},`)
  const nest = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`
  const all: [name: string, json: string][] = [
    ['55 arrays', nest(55, '[', ']')],
    ['70 arrays', nest(70, '[', ']')],
    ['3,000 arrays', nest(3_000, '[', ']')],
    ['3,000 objects', nest(3_000, '{"a":', '}')],
    ['50,000 numbers', `[${'1,'.repeat(50_000)}1]`],
    ['300,000 numbers', `[${'1,'.repeat(300_000)}1]`],
    ['20,000 keys', `{${Array.from({ length: 20_000 }, (_, n) => `"k${n}":1`).join()}}`],
    ['20,000 times one key', `{${'"k":1,'.repeat(20_000)}"k":2}`],
    ['20,000 keys that are numbers', `{${Array.from({ length: 20_000 }, (_, n) => `"${n * 7}":1`).join()}}`],
    ['__proto__ as a key', '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
    ['500,000 spaces', `${' '.repeat(500_000)}1`],
    ['100,000 escapes', `"${'\\u0041'.repeat(100_000)}"`],
    ['100,000 backslashes', `"${'\\\\'.repeat(100_000)}"`],
    ['100,000 quotes', `"${'\\"'.repeat(100_000)}"`],
    ['a number of 100,000 digits', '1'.repeat(100_000)],
    ['a text of 1 MB', `"${'z'.repeat(1_000_000)}"`],
    ['60,000 emoji', `"${'👩‍💻'.repeat(20_000)}"`],
  ]
  for (const [name, json] of all) yield text('shapes', name, withArguments(json))
  yield text('shapes', 'a body of 4 MiB and a byte', 'x'.repeat(4 * 1024 * 1024 + 1), { want: 'refused' })
  yield text('shapes', 'a tool’s name of 1 MB', good.replace('"echo"', `"${'n'.repeat(1_000_000)}"`), { tool: 'echo' })
  yield text('shapes', 'a method of 1 MB', good.replace('"tools/call"', `"${'m'.repeat(1_000_000)}"`))
}

/** Good messages in which chance has changed, left out, doubled or swapped some bytes. */
export function* mutations(era: Era, random: Random, count: number): Iterable<Text> {
  const all = messagesOf(era)
  for (let n = 0; n < count; n++) {
    const message = oneOf(random, all)
    let bytes: Buffer = Buffer.from(JSON.stringify(message))
    const times = 1 + below(random, 4)
    for (let time = 0; time < times; time++)
      bytes = oneOf(random, MUTATIONS)(bytes, below(random, bytes.length), random)
    const tool = message.params['name'] ?? message.params['uri'] ?? message.params['taskId']
    const about = { method: message.method, ...(typeof tool === 'string' && { tool }) }
    yield text('mutations', `number ${n} of ${message.method}`, bytes, about)
  }
}

type Mutation = (bytes: Buffer, at: number, random: Random) => Buffer
const STRUCTURE = [...'{}[],:"\\ 0-e.']

const MUTATIONS: Mutation[] = [
  (bytes, at, random) => replaced(bytes, at, 1, Buffer.from([below(random, 256)])),
  (bytes, at, random) => replaced(bytes, at, 1, Buffer.from(oneOf(random, STRUCTURE))),
  (bytes, at, random) => replaced(bytes, at, 0, Buffer.from(oneOf(random, STRUCTURE))),
  (bytes, at, random) => replaced(bytes, at, 1 + below(random, 8), Buffer.alloc(0)),
  (bytes, at, random) => replaced(bytes, at, 0, bytes.subarray(at, at + below(random, 40))),
  (bytes, at, random) => replaced(bytes, at, 1, Buffer.from([(bytes[at] ?? 0) ^ (1 << below(random, 8))])),
]

function replaced(bytes: Buffer, at: number, length: number, by: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(at + length)])
}
