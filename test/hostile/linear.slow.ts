/**
 * What peers send is read in as many steps as it is long, whatever its shape: four times the size may take four times the
 * steps, and some for sorting, but not sixteen times. Steps are blocks of code, not milliseconds. Names begin with the number
 * of the hole.
 */
// First, because only what is loaded after it is counted.
import './steps.js'

import type { FastifyReply, FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { canonical } from '../../src/base/rpc/canonical.js'
import { LineDecoder } from '../../src/base/rpc/lines.js'
import { type Id, type Message, parseMessage, type Request } from '../../src/base/rpc/message.js'
import { sourceOf, sourceOfBytes } from '../../src/base/rpc/source.js'
import { duplicateKey, edit, isEmpty, keys, objectIn, parseObject, write } from '../../src/base/rpc/splice.js'
import { SseDecoder } from '../../src/base/rpc/sse.js'
import { checkMedia } from '../../src/clients/http/content-type.js'
import { readHeaders } from '../../src/clients/http/headers.js'
import { readBatch } from '../../src/clients/legacy/batch.js'
import { annotationsOfTool, withoutAnnotations, withoutMisannotated } from '../../src/mcp/protocol/annotations.js'
import { forwardedCapabilities } from '../../src/mcp/protocol/capabilities.js'
import { classify, readMessage } from '../../src/mcp/protocol/classify.js'
import { traits } from '../../src/mcp/protocol/eras.js'
import { checkHeaders, checkParamHeaders, paramHeaders, versionHeader } from '../../src/mcp/protocol/headers.js'
import { decodeRequest as decodeLegacy, encodeReply as encodeLegacy } from '../../src/mcp/protocol/legacy-client.js'
import { lift } from '../../src/mcp/protocol/lift.js'
import { decodeRequest, encodeReply } from '../../src/mcp/protocol/modern-client.js'
import { envelope } from '../support/modern.js'
import { stepsOf } from './steps.js'

/** Members for each level, so that the longest is as deep as a message of a client may be. */
const DEEP = 80
/** Ways in which a value of some `size` can be laid out to hurt. */
const SHAPES: Readonly<Record<string, (size: number) => string>> = {
  'an array of numbers': (size) => `[${'1,'.repeat(size)}1]`,
  'an array of arrays': (size) => `[${'[],'.repeat(size)}[]]`,
  'an array that is the deeper the longer': (size) =>
    `${'['.repeat(size / DEEP)}${'{"a":1},'.repeat(size)}1${']'.repeat(size / DEEP)}`,
  'an object that is the deeper the longer': (size) =>
    `${'{"a":'.repeat(size / DEEP)}{${members(size)}}${'}'.repeat(size / DEEP)}`,
  'many members': (size) => `{${members(size)}}`,
  'members of one name': (size) => `{${'"a":{},'.repeat(size)}"a":1}`,
  'members of objects': (size) => `{${Array.from({ length: size }, (_, i) => `"k${i}":{"type":"string"}`).join()}}`,
  spaces: (size) => `[${' '.repeat(size)}]`,
  escapes: (size) => `"${'\\"'.repeat(size)}"`,
  'escaped names': (size) => `{${Array.from({ length: size }, (_, i) => `"\\u0061${i}":1`).join()}}`,
  digits: (size) => '1'.repeat(size),
}

function members(size: number): string {
  return Array.from({ length: size }, (_, i) => `"k${i}":${i}`).join()
}

const META = JSON.stringify(envelope())
const LEGACY = '2025-03-26'
const bytes = (text: string) => Buffer.from(text)
const requestOf = (params: string) =>
  parseMessage(sourceOf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)) as Request
const to = () =>
  ({
    revision: LEGACY,
    traits: traits[LEGACY],
    strict: true,
    memory: { wrapped: new Set<string>() },
    lost: () => {},
    tasks: false,
  }) as const
const asked = {
  method: 'tools/call',
  params: parseObject('{"name":"x"}'),
  caller: { revision: '', capabilities: '{}' },
}

/** What is done with a value somewhere on the way of a message, whoever has sent it. */
const READERS: Readonly<Record<string, (json: string) => unknown>> = {
  canonical,
  'a client’s message': (json) => readMessage([bytes(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${json}}}`)]),
  'a server’s message': (json) =>
    parseMessage(sourceOfBytes([bytes(`{"jsonrpc":"2.0","id":1,"result":{"a":${json}}}`)])),
  'a modern request': (json) => decodeRequest(requestOf(`{"name":"x","arguments":${json},"_meta":${META}}`)),
  'its meta': (json) => {
    const { meta } = decodeRequest(requestOf(`{"name":"x","_meta":${META.slice(0, -1)},"x/y":${json}}}`))
    return write(meta)
  },
  'its parameters': (json) => json.startsWith('{') && decodeRequest(requestOf(`${json.slice(0, -1)},"_meta":${META}}`)),
  capabilities: (json) => json.startsWith('{') && forwardedCapabilities(json),
  'a legacy request': (json) => decodeLegacy(requestOf(`{"name":"x","arguments":${json}}`)),
  'a result for a modern client': (json) => {
    const result = lift('tools/call', parseObject(`{"content":[],"structuredContent":${json}}`))
    return encodeReply({ kind: 'result', result }, '1' as Id, { method: 'tools/call', progressToken: undefined })
  },
  'a result for a legacy client': (json) => {
    const result = parseObject(`{"content":[],"structuredContent":${json},"resultType":"complete"}`)
    return encodeLegacy({ kind: 'result', result }, '1' as Id, asked as never, undefined, to())
  },
  'content for a legacy client': (json) => {
    const result = parseObject(`{"content":${json.startsWith('[') ? json : `[${json}]`},"resultType":"complete"}`)
    return encodeLegacy({ kind: 'result', result }, '1' as Id, asked as never, undefined, to())
  },
  'a list of tools for a legacy client': (json) => {
    const tool = `{"name":"x","inputSchema":{"type":"object","properties":${json}},"outputSchema":${json}}`
    const result = parseObject(`{"tools":[${tool}],"resultType":"complete"}`)
    return encodeLegacy(
      { kind: 'result', result },
      '1' as Id,
      { ...asked, method: 'tools/list' } as never,
      undefined,
      to(),
    )
  },
  'a list of tools for a modern client': (json) =>
    write(
      lift('tools/list', parseObject(`{"tools":[{"name":"x","inputSchema":{"properties":${json}},"execution":{}}]}`)),
    ),
  'annotations of tools': (json) => {
    const tool = parseObject(
      `{"name":"x","inputSchema":{"type":"object","properties":${json},"items":{"x-mcp-header":1}}}`,
    )
    annotationsOfTool(tool)
    withoutMisannotated(parseObject(`{"tools":[${write(tool)}]}`))
    withoutAnnotations(objectIn(tool, 'inputSchema') ?? tool)
  },
  'an object that is edited': (json) => {
    if (!json.startsWith('{')) return undefined
    const object = parseObject(json)
    const edits = Object.fromEntries(keys(object).map((key) => [key, '1']))
    return [duplicateKey(object), isEmpty(object), write(edit(object, edits)), write(edit(object, { k1: undefined }))]
  },
}

t.test('reads a JSON value of any shape in linear steps', async (t) => {
  for (const [what, read] of Object.entries(READERS)) {
    for (const [name, shape] of Object.entries(SHAPES))
      growsInStep(t, `${what}: ${name}`, (size) => {
        const json = shape(size)
        return () => read(json)
      })
  }
})

t.test('reads headers of any length in linear steps', async (t) => {
  const headers: Record<string, (size: number) => () => unknown> = {
    'a media type with space in it': (size) => () => media(`application/json${' '.repeat(size)};${' '.repeat(size)}x`),
    'a media type of many parameters': (size) => () => media(`application/json${'; a=b'.repeat(size)}`),
    'many types that are accepted': (size) => () => media('application/json', `${'a/b;q=0.1,'.repeat(size)}*/*`),
    'space in what is accepted': (size) => () =>
      media('application/json', `${' '.repeat(size)}*/*${' '.repeat(size)}x`),
    'a list of versions': (size) => () => versionHeader({ 'mcp-protocol-version': ['2026-07-28,'.repeat(size)] }),
    'space between versions': (size) => () =>
      versionHeader({ 'mcp-protocol-version': [`2026-07-28,${' '.repeat(size)}x${'\t'.repeat(size)}y`] }),
    'a name in Base64': (size) => () =>
      checkHeaders(requestOf(`{"name":"${'x'.repeat(size)}"}`), {
        'mcp-method': 'tools/call',
        'mcp-name': `=?base64?${btoa('x'.repeat(size))}?=`,
      }),
    'many headers': (size) => () =>
      readHeaders({ headers: {}, rawHeaders: Array.from({ length: Math.min(size, 200) }, (_, i) => `mcp-param-${i}`) }),
  }
  for (const [name, prepare] of Object.entries(headers)) growsInStep(t, name, prepare)
})

t.test('finds mirrored arguments in linear steps', async (t) => {
  const annotations = (size: number) => Array.from({ length: size }, (_, i) => ({ header: `H${i}`, path: [`k${i}`] }))
  growsInStep(t, 'for a server', (size) => () => paramHeaders(annotations(size), parseObject(`{${members(size)}}`)))
  growsInStep(t, 'of a client', (size) => {
    const headers = new Map(annotations(size).map(({ header }, i) => [`mcp-param-${header.toLowerCase()}`, String(i)]))
    return () => checkParamHeaders(annotations(size), parseObject(`{${members(size)}}`), headers)
  })
})

t.test('reads arrays of messages and streams in linear steps, however they are split', async (t) => {
  const compat = { bareDiscover: true, ignoreVersionSkew: true, draftErrorCodes: false }
  growsInStep(t, 'a batch', (size) => {
    const text = `[${Array.from({ length: size }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`)}]`
    return () => {
      const batch = parseMessage(sourceOf(text)) as Message & { kind: 'batch' }
      classify(batch, undefined, { revision: LEGACY }, compat)
      readBatch(batch)
    }
  })
  const events = (size: number) => `${': x\r\n'.repeat(size)}id: 1\ndata: ${'y'.repeat(size)}\ndata:z\r\r\n\n`
  growsInStep(t, 'events, byte by byte', (size) => () => {
    const decoder = new SseDecoder()
    for (const byte of bytes(events(size))) decoder.push(Uint8Array.of(byte))
  })
  growsInStep(t, 'lines, byte by byte', (size) => () => {
    const decoder = new LineDecoder(1_000_000)
    for (const byte of bytes(`${'x'.repeat(size)}\n${'\n'.repeat(size)}`)) decoder.push(Uint8Array.of(byte))
  })
})

function media(type: string, accept?: string): void {
  const headers = { 'content-type': type, ...(accept !== undefined && { accept }) }
  checkMedia({ method: 'POST', headers } as FastifyRequest, {} as FastifyReply, () => {})
}

/** Compares the steps for a size and for four times as much. */
function growsInStep(t: Test, name: string, prepare: (size: number) => () => unknown): void {
  const steps = (size: number) => {
    const work = prepare(size)
    return stepsOf(() => {
      try {
        work()
      } catch {
        // Refused, which takes no longer either.
      }
    })
  }
  // What is compiled and remembered for the first time is not to be counted.
  steps(100)
  const [once, fourTimes] = [steps(1_000), steps(4_000)]
  t.ok(fourTimes <= once * 4 * 1.5 + 2_000, `${name}: ${once} steps, then ${fourTimes}`)
}
