/** H7: work on a message is linear in its size, whatever its shape. What is compared is steps at a size and at twice that size. */
import t from 'tap'
import { brokenAnswerTo } from '../../src/base/rpc/broken.js'
import { LineDecoder } from '../../src/base/rpc/lines.js'
import { parseMessage, type Response } from '../../src/base/rpc/message.js'
import { Outline } from '../../src/base/rpc/outline.js'
import { repairedSourceOf, sourceOf } from '../../src/base/rpc/source.js'
import { SseDecoder } from '../../src/base/rpc/sse.js'
import type { Call } from '../../src/mcp/protocol/call.js'
import * as legacyServer from '../../src/mcp/protocol/legacy-server.js'
import * as modernServer from '../../src/mcp/protocol/modern-server.js'
import { Peer } from '../../src/servers/peer.js'
import { excerpt, StderrTail } from '../../src/servers/transport/stdio/stderr-tail.js'
import { callOf } from '../support/calls.js'
import { silentChannel } from '../support/silent-channel.js'
import { stepsOf } from '../support/steps.js'

const SIZE = 4_000
/** Twice the size may take so many times the steps; four times would be the square. */
const MOST = 2.5

const inParams = (value: string) => `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":${value}}}`
const inResult = (value: string) => `{"jsonrpc":"2.0","result":{"x":${value}},"id":1}`

/** Values by their size, roughly in characters. */
const values: Record<string, (n: number) => string> = {
  'a flat array': (n) => `[${'1,'.repeat(n / 2)}1]`,
  'an array of arrays': (n) => `[${'[],'.repeat(n / 3)}[]]`,
  'an array of objects': (n) => `[${'{"a":1},'.repeat(n / 8)}{}]`,
  'a wide array 200 levels down': (n) => `${'['.repeat(200)}${'1,'.repeat(n / 2)}1${']'.repeat(200)}`,
  'arrays beside each other, each 100 levels deep': (n) =>
    `[${`${'['.repeat(100)}${']'.repeat(100)},`.repeat(n / 200)}1]`,
  'objects beside each other, each 100 levels deep': (n) =>
    `[${`${'{"a":'.repeat(100)}1${'}'.repeat(100)},`.repeat(n / 500)}1]`,
  'more levels than are read': (n) => '['.repeat(n) + ']'.repeat(n),
  'more levels of _meta than are read': (n) => `${'{"_meta":'.repeat(n / 9)}1${'}'.repeat(n / 9)}`,
  'brackets without end': (n) => '[{"a":'.repeat(n / 6),
  spaces: (n) => `[ ${' \t'.repeat(n / 4)}1${'\n '.repeat(n / 4)}]`,
  'escaped quotes': (n) => `"${'\\"'.repeat(n / 2)}"`,
  'escaped backslashes': (n) => `"${'\\\\'.repeat(n / 2)}"`,
  'escaped characters': (n) => `"${'\\u00e9'.repeat(n / 6)}"`,
  'backslashes and no end': (n) => `"${'\\'.repeat(n)}`,
  quotes: (n) => '"'.repeat(n),
  'a key again and again': (n) => `{${'"a":1,'.repeat(n / 6)}"a":2}`,
  'an escaped key again and again': (n) => `{${'"\\u0061":1,'.repeat(n / 11)}"a":2}`,
  'keys that differ': (n) => `{${Array.from({ length: n / 10 }, (_, i) => `"k${i}":1`).join(',')}}`,
  'a long number': (n) => '1'.repeat(n),
  'a long fraction': (n) => `0.${'1'.repeat(n)}e${'9'.repeat(10)}`,
  'commas and nothing else': (n) => `[${','.repeat(n)}]`,
}

/** Whole messages by their size. */
const messages: Record<string, (n: number) => string> = {
  ...Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => [
      [name, value],
      [`${name}, in params`, (n: number) => inParams(value(n))],
      [`${name}, in a result`, (n: number) => inResult(value(n))],
      [`${name}, in an array of a hundred`, (n: number) => `[${`${inResult(value(n / 100))},`.repeat(99)}{}]`],
      [`${name}, in _meta of progress`, (n: number) => progress(value(n))],
      [`${name}, in an answer that cannot be read`, (n: number) => inResult(`[NaN,${value(n)}]`)],
    ]),
  ),
  'an envelope of one member again and again': (n) => `{${'"id":1,'.repeat(n / 7)}"jsonrpc":"2.0"}`,
  'an array of more messages than there may be': (n) => `[${`${inParams('1')},`.repeat(n / 60)}{}]`,
  'messages in an array in an array': (n) => `[[${`${inParams('1')},`.repeat(n / 60)}{}]]`,
}

function progress(value: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"_meta":{"x":${value}},"progressToken":1}}`
}

const silent = silentChannel()

/** A peer with a call that waits, as it is when a server answers. */
function peer(): Peer {
  const peer = new Peer(silent)
  peer.send(peer.beginExchange(), 'tools/call', '{}')
  return peer
}

/** Things that read a text of somebody else. What they throw is their affair. */
const readers: Record<string, (text: string) => () => unknown> = {
  'a message of a client': (text) => () => parseMessage(sourceOf(text), { strict: true, maxDepth: 64 }),
  'a message of a server': (text) => {
    const receiver = peer()
    const bytes = [new TextEncoder().encode(text)]
    return () => receiver.receive(bytes, undefined)
  },
  'an answer that cannot be read': (text) => () => brokenAnswerTo(sourceOf(text)),
}

const decodeLegacy = (call: Call, response: Response) => legacyServer.decodeReply(call, response, undefined)
const decodeModern = (call: Call, response: Response) => modernServer.decodeReply(call, response)

function growth(work: (size: number) => () => unknown): { once: number; twice: number } {
  const steps = (size: number) => {
    const run = work(size)
    return stepsOf(() => {
      try {
        run()
      } catch {
        // Refused is as good as read.
      }
    })
  }
  return { once: steps(SIZE), twice: steps(2 * SIZE) }
}

for (const [reader, read] of Object.entries(readers)) {
  t.test(`${reader} takes steps in proportion to its size, whatever its shape`, async (t) => {
    for (const [shape, text] of Object.entries(messages)) {
      const { once, twice } = growth((size) => read(text(size)))
      t.ok(twice <= MOST * once + 2_000, `${shape}: ${once} steps, and ${twice} for twice the size`)
      t.ok(once <= 60 * text(SIZE).length + 20_000, `${shape}: ${once} steps for ${text(SIZE).length} characters`)
    }
  })
}

/** Results by the method that they answer, with a value in the places that are looked into. */
const results: Record<string, (value: string) => string> = {
  'tools/list': (value) =>
    `{"tools":[{"name":"a","inputSchema":${value},"outputSchema":${value},"_meta":${value}},${value}],"nextCursor":${value}}`,
  'tools/call': (value) => `{"content":[{"type":"text","text":${value}},${value}],"structuredContent":${value}}`,
  'prompts/get': (value) => `{"messages":[{"role":"user","content":${value}}],"_meta":${value}}`,
}

t.test('a result on its way to a client takes steps in proportion to its size, whatever its shape', async (t) => {
  for (const [method, result] of Object.entries(results)) {
    const call = callOf({ method })
    for (const [shape, value] of Object.entries(values)) {
      for (const decode of [decodeLegacy, decodeModern]) {
        // Beyond the size up to which every character of a string is looked at.
        const { once, twice } = growth((size) => () => {
          const message = parseMessage(sourceOf(`{"jsonrpc":"2.0","id":1,"result":${result(value(5 * size))}}`))
          if (message.kind === 'response') decode(call, message)
        })
        t.ok(twice <= MOST * once + 2_000, `${method}, ${shape}: ${once} steps, and ${twice} for twice the size`)
      }
    }
  }
})

const cuts: Record<string, (bytes: Uint8Array) => Uint8Array[]> = {
  whole: (bytes) => [bytes],
  'in pieces of a hundred': (bytes) => piecesOf(bytes, 100),
  'byte by byte': (bytes) => piecesOf(bytes, 1),
}

function piecesOf(bytes: Uint8Array, length: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
    bytes.subarray(at * length, (at + 1) * length),
  )
}

const streams: Record<string, (n: number) => string> = {
  'one long line': (n) => `data: ${'x'.repeat(n)}\n\n`,
  'a line without end': (n) => `data: ${'x'.repeat(n)}`,
  'empty lines': (n) => '\n'.repeat(n),
  'carriage returns': (n) => '\r'.repeat(n),
  'line ends of Windows': (n) => '\r\n'.repeat(n / 2),
  'lines of one character': (n) => 'x\n'.repeat(n / 2),
  'an event of many lines': (n) => `${'data: x\n'.repeat(n / 8)}\n`,
  'many events': (n) => 'id: 1\ndata: x\n\n'.repeat(n / 15),
  colons: (n) => ':'.repeat(n),
  'a stack trace': (n) => `Error: x\n${'    at y\n'.repeat(n / 9)}`,
}

const framings: Record<string, (pieces: Uint8Array[]) => () => unknown> = {
  'lines of a program': (pieces) => {
    const decoder = new LineDecoder(1_000_000)
    return () => {
      for (const piece of pieces)
        for (const line of decoder.push(piece)) if (!(line instanceof Outline)) repairedSourceOf(line)
    }
  },
  'events of a server': (pieces) => {
    const decoder = new SseDecoder()
    return () => {
      for (const piece of pieces) for (const { data } of decoder.push(piece)) repairedSourceOf(data)
    }
  },
  'what a program writes to stderr': (pieces) => {
    const tail = new StderrTail()
    return () => {
      for (const piece of pieces) tail.push(piece)
      excerpt(tail.lines)
    }
  },
}

for (const [framing, take] of Object.entries(framings)) {
  t.test(`${framing} take steps in proportion to their size, however they are split`, async (t) => {
    for (const [shape, text] of Object.entries(streams)) {
      for (const [how, cut] of Object.entries(cuts)) {
        const { once, twice } = growth((size) => take(cut(new TextEncoder().encode(text(size)))))
        t.ok(twice <= MOST * once + 2_000, `${shape}, ${how}: ${once} steps, and ${twice} for twice the size`)
      }
    }
  })
}

t.test('reads no further from a closed channel, and reports its end once', async (t) => {
  let closed = 0
  let ended = 0
  const flooded = new Peer({ ...silent, close: async () => void closed++ })
  flooded.owner = { asked() {}, notified() {}, ended: () => ended++ }
  flooded.send(flooded.beginExchange(), 'tools/call', '{}')
  const noise = [new TextEncoder().encode('x'.repeat(1_000_000))]
  for (let n = 0; n < 100; n++) flooded.receive(noise, undefined)
  t.equal(ended, 1)
  t.equal(closed, 1)
  t.equal(
    stepsOf(() => flooded.receive(noise, undefined)),
    0,
  )
})
