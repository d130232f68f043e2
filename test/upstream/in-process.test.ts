/** A server in this process that sends many messages in one turn of the event loop, and does not wait for room. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { Memory } from '../../src/base/limits/memory.js'
import type { SdkTransport } from '../../src/mcp/ports/transport.js'
import type { Receiver } from '../../src/servers/transport/channel.js'
import { InProcessTransport } from '../../src/servers/transport/in-process.js'
import { until } from '../support/eventually.js'

type Json = Record<string, unknown>

const note = (n: number) => ({ jsonrpc: '2.0', method: 'notifications/x', params: { n } })

/** A channel to a server, and what it has delivered. */
async function connected(memory?: Memory) {
  const got: number[] = []
  const dropped: string[] = []
  /** How many were delivered in each turn. */
  const turns: number[] = []
  let open: number | undefined
  const receiver = {
    receive: ([bytes]: readonly Uint8Array[]) => {
      got.push((JSON.parse(Buffer.from(bytes as Uint8Array).toString()) as { params: { n: number } }).params.n)
      if (open === undefined) {
        open = turns.push(0) - 1
        // Before the next turn of the event loop, in which the next slice comes.
        process.nextTick(() => {
          open = undefined
        })
      }
      turns[open] = (turns[open] as number) + 1
    },
    dropped: (outline: { beginning: unknown }) => dropped.push(String(outline.beginning)),
    ended: () => {},
  }
  let server: SdkTransport | undefined
  const transport = new InProcessTransport({
    serve: async (end) => {
      server = end
      await end.start()
    },
    lineLimit: 1_000_000,
    ...(memory && { memory }),
  })
  const channel = await transport.open()
  channel.attach(receiver as unknown as Receiver)
  const send = (n: number): Promise<void> => (server as SdkTransport).send(note(n) as never)
  return { channel, got, dropped, turns, send }
}

/** Counts the elements of arrays that are copied or moved while `run` runs. */
async function copied(run: () => Promise<unknown>): Promise<number> {
  let count = 0
  const own = Array.prototype
  const { slice, splice, concat } = own
  const iterate = own[Symbol.iterator]
  const counted = <F extends (...args: never[]) => unknown>(
    original: F,
    weigh: (self: unknown[], made: unknown) => number,
  ) =>
    function (this: unknown[], ...args: never[]) {
      const made = Reflect.apply(original, this, args)
      count += weigh(this, made)
      return made
    }
  const lengthOf = (_self: unknown[], made: unknown) => (made as unknown[]).length
  const patched = {
    slice: counted(slice, lengthOf),
    concat: counted(concat, lengthOf),
    splice: counted(splice as (...args: never[]) => unknown, (self, made) => self.length + (made as unknown[]).length),
    // Spread arguments and loops read all elements, too.
    [Symbol.iterator]: counted(iterate as (...args: never[]) => unknown, ({ length }) => length),
  }
  Object.assign(own, patched)
  try {
    await run()
  } finally {
    Object.assign(own, { slice, splice, concat, [Symbol.iterator]: iterate })
  }
  return count
}

t.test('the work for each message of a turn is the same, however many there are', async (t) => {
  const workFor = async (count: number) => {
    const { got, send } = await connected()
    const work = await copied(async () => {
      for (let n = 0; n < count; n++) send(n).catch(() => {})
      await until(() => got.length === count, 'all messages')
    })
    t.same(
      got,
      Array.from({ length: count }, (_, n) => n),
      `all ${count}, in order`,
    )
    return work / count
  }
  await workFor(100)
  const [few, many] = [await workFor(2_000), await workFor(20_000)]
  t.ok(many < 3 * few, `${few} elements are copied for each of 2,000 messages, ${many} for each of 20,000`)
})

t.test('other channels have their turns between the slices of a flood', async (t) => {
  const { got, turns, send } = await connected()
  for (let n = 0; n < 2_000; n++) send(n).catch(() => {})
  t.equal(got.length, 64, 'the first slice')
  await until(() => got.length === 2_000, 'all messages')
  t.equal(Math.max(...turns), 64)
})

t.test('a server that waits for room waits until its messages have been delivered', async (t) => {
  const { got, send } = await connected()
  for (let n = 0; n < 64; n++) await send(n)
  const full = send(64)
  t.equal(got.length, 64, 'the slice of this turn is complete')
  await full
  t.equal(got.length, 65)
})

t.test(
  'what a server sends beyond the memory is dropped and told; what fits is delivered, and then all is free',
  async (t) => {
    const memory = new Memory({ max: 256 * 1024 })
    const { channel, got, dropped, send } = await connected(memory)
    const COUNT = 10_000
    for (let n = 0; n < COUNT; n++) send(n).catch(() => {})
    t.ok(memory.used > 0 && memory.used <= memory.max, 'what waits is counted')
    t.ok(dropped.length > 0)
    const { length: lost } = dropped
    await until(() => got.length + lost === COUNT, 'what fits')
    t.same(
      got,
      Array.from({ length: COUNT - lost }, (_, n) => n),
      'nothing is lost before the bound, and the order stays',
    )
    t.equal(memory.used, 0)
    await send(COUNT)
    t.equal(got.at(-1), COUNT, 'and it goes on')
    for (let n = 0; n < 2_000; n++) send(n).catch(() => {})
    t.ok(memory.used > 0)
    await channel.close()
    t.equal(memory.used, 0, 'also after the end')
  },
)

/** A legacy server whose only tool sends so many notifications in one turn, and then its answer. */
function flooding(count: number) {
  return {
    serve: async (end: SdkTransport) => {
      end.onmessage = (message) => {
        const { id, method, params } = message as Json & { params: Json }
        const answer = (result: Json) => void end.send({ jsonrpc: '2.0', id, result } as never).catch(() => {})
        if (method === 'initialize') {
          const protocolVersion = params['protocolVersion']
          const about = { capabilities: { tools: {} }, serverInfo: { name: 'flooding', version: '1' } }
          answer({ protocolVersion, ...about })
        } else if (method === 'tools/call') {
          const progressToken = (params['_meta'] as Json)['progressToken']
          for (let progress = 1; progress <= count; progress++) {
            const told = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } }
            end.send(told as never).catch(() => {})
          }
          answer({ content: [{ type: 'text', text: 'done' }] })
        } else if (method === 'tools/list') answer({ tools: [{ name: 'flood', inputSchema: { type: 'object' } }] })
        else if (id !== undefined)
          end.send({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } } as never).catch(() => {})
      }
      await end.start()
    },
  }
}

async function floodThrough(t: Test, count: number): Promise<{ heard: number[]; dropped: number }> {
  const lines: Json[] = []
  const logger = pino({}, { write: (line: string) => lines.push(JSON.parse(line) as Json) })
  const bridge = await createBridge({ mcpServers: { it: flooding(count) }, logger })
  t.teardown(() => bridge.close())
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'test', version: '1' })
  await bridge.connect(far)
  await client.connect(near)
  const heard: number[] = []
  const result = await client.callTool({ name: 'flood', arguments: {} }, undefined, {
    onprogress: ({ progress }) => heard.push(progress),
  })
  t.match(result, { content: [{ text: 'done' }] })
  const line = lines.find(({ event, name }) => event === 'call' && name === 'flood')
  return { heard, dropped: Number(line?.['dropped'] ?? 0) }
}

t.test('of 20,000 notifications in one turn none is lost without a word', async (t) => {
  const { heard, dropped } = await floodThrough(t, 20_000)
  t.equal(heard.length + dropped, 20_000, `${dropped} were dropped`)
  t.same(
    heard,
    [...heard].sort((a, b) => a - b),
    'in order',
  )
  t.equal(dropped, 0, 'the client reads as fast as they come')
})
