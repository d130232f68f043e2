/** Links between replicas over a way that loses, repeats and shuffles: what is sent arrives once and in order, or both know. */
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Broken, type Link, Links } from '../../src/replicas/links.js'
import { Incoming, type Numbered, Outgoing } from '../../src/replicas/reliable.js'
import { newKey, Sealer } from '../../src/seal.js'
import { until } from '../support/eventually.js'

const KEY = newKey()

// Links alone keep no process alive.
const alive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(alive))

/** As much of Redis as links need, with a mishap in its channels as often as a test wants. */
class Bus {
  working = true
  /** How often, of one, something is lost, said twice, or late. */
  mishaps = { lost: 0, twice: 0, late: 0 }
  readonly #listeners = new Map<string, (message: Buffer) => void>()
  /** Everything that was said, in order. */
  readonly said: { channel: string; message: Buffer }[] = []

  listen(channel: string, listener: (message: Buffer) => void): void {
    this.#listeners.set(channel, listener)
  }

  async publish(channel: string, message: Buffer): Promise<number> {
    this.said.push({ channel, message })
    const listener = this.#listeners.get(channel)
    const { lost, twice, late } = this.mishaps
    if (!listener || !this.working) return 0
    const say = () => setTimeout(() => listener(message), Math.random() < late ? Math.random() * 100 : 0)
    if (Math.random() >= lost) say()
    if (Math.random() < twice) say()
    return 1
  }

  deafen(channel: string): void {
    this.#listeners.delete(channel)
  }

  repeat(entries: readonly { channel: string; message: Buffer }[]): void {
    for (const { channel, message } of entries) this.#listeners.get(channel)?.(message)
  }
}

function linksOn(t: Test, bus: Bus, id: string, opened: (link: Link) => void = () => {}, hasLeft = false) {
  const sealer = new Sealer([KEY], 'replica')
  const options = {
    id,
    prefix: 'p:',
    redis: bus,
    sealer: () => sealer,
    opened,
    heard: () => {},
    hasLeft: async () => hasLeft,
  }
  const links = new Links(options)
  t.teardown(() => links.close())
  return links
}

const digest = (parts: readonly Uint8Array[]) =>
  createHash('sha256')
    .update(Buffer.concat([...parts]))
    .digest('hex')

/** Answers each part by the same, backwards, until one that is empty; counts what it has been asked. */
function echo(asked: Map<string, number>): (link: Link) => void {
  return (link) => {
    asked.set(link.id, (asked.get(link.id) ?? 0) + 1)
    link.onPart = (part) => {
      link.send(Buffer.from(part).reverse()).catch(() => {})
      if (part.length === 0) link.finish()
    }
  }
}

/** Sends parts, and gives what comes back. */
function talk(link: Link, parts: readonly Uint8Array[]): Promise<Buffer[]> {
  const back: Buffer[] = []
  return new Promise((resolve, reject) => {
    link.onBroken = (why) => reject(new Error(why))
    link.onPart = (part) => {
      if (part.length > 0) {
        back.push(part)
        return
      }
      link.end()
      resolve(back)
    }
    for (const part of [...parts, new Uint8Array(0)]) link.send(part).catch(() => {})
  })
}

t.test('what is lost, repeated and shuffled arrives once and in order', async (t) => {
  const bus = new Bus()
  const asked = new Map<string, number>()
  bus.mishaps = { lost: 0.2, twice: 0.2, late: 0.3 }
  const one = linksOn(t, bus, 'one')
  const two = linksOn(t, bus, 'two', echo(asked))
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const parts = Array.from({ length: 1 + Math.floor(Math.random() * 8) }, () =>
        randomBytes(1 + Math.random() * 2_000),
      )
      const back = await talk(one.open('two'), parts)
      t.equal(digest(back.map((part) => Buffer.from(part).reverse())), digest(parts))
    }),
  )
  t.equal(asked.size, 40)
  t.ok(
    [...asked.values()].every((times) => times === 1),
    'nobody was asked twice',
  )
  bus.mishaps = { lost: 0, twice: 0, late: 0 }
  await until(() => one.size === 0 && two.size === 0, 'no link is left')
})

t.test('a lost part arrives although further parts are sent all the time', async (t) => {
  const bus = new Bus()
  const one = linksOn(t, bus, 'one')
  const received: string[] = []
  linksOn(t, bus, 'two', (link) => {
    link.onPart = (part) => received.push(String(part))
  })
  const link = one.open('two')
  link.send(Buffer.from('first')).catch(() => {})
  await until(() => received.length === 1)
  bus.mishaps.lost = 1
  link.send(Buffer.from('lost')).catch(() => {})
  bus.mishaps.lost = 0
  const flow = setInterval(() => {
    link.send(Buffer.from('further')).catch(() => {})
  }, 20)
  t.teardown(() => clearInterval(flow))
  await until(() => received.includes('lost'), 'the lost part')
  t.same(received.slice(0, 3), ['first', 'lost', 'further'])
})

t.test('what was said once does not hold a second time', async (t) => {
  const bus = new Bus()
  const asked = new Map<string, number>()
  const one = linksOn(t, bus, 'one')
  const two = linksOn(t, bus, 'two', echo(asked))
  await talk(one.open('two'), [randomBytes(100)])
  await until(() => one.size === 0 && two.size === 0)
  const said = [...bus.said]
  for (let times = 0; times < 3; times++) {
    bus.repeat(said)
    await sleep(50)
  }
  t.equal(asked.size, 1, 'who hears it again asks who has said it, and is told that nobody has')
  await until(() => two.size === 0)

  const [{ message } = { message: Buffer.alloc(0) }] = said
  const changed = Buffer.from(message)
  changed[changed.length - 20] = (changed[changed.length - 20] as number) ^ 1
  bus.repeat([
    { channel: 'p:r:two', message: changed },
    { channel: 'p:r:two', message: Buffer.from('hello') },
    { channel: 'p:r:two', message: Buffer.alloc(0) },
  ])
  bus.repeat(said.filter(({ channel }) => channel === 'p:r:two').map((entry) => ({ ...entry, channel: 'p:r:one' })))
  await sleep(50)
  t.same([one.size, two.size], [0, 0], 'what is not ours, or was said elsewhere, means nothing')
})

t.test('a slow reader delays the sender', async (t) => {
  const bus = new Bus()
  let sent = 0
  let complete = false
  const one = linksOn(t, bus, 'one')
  const two = linksOn(t, bus, 'two', (link) => {
    const answer = async () => {
      for (; sent < 200; sent++) await link.send(randomBytes(50_000))
      await link.send(new Uint8Array(0))
      link.finish()
    }
    link.onPart = () => {
      answer().catch(t.fail)
    }
  })
  const link = one.open('two')
  let got = 0
  link.onPart = (part) => {
    if (part.length === 0) {
      complete = true
      link.end()
    } else if (++got === 20) link.hold(true)
  }
  link.send(Buffer.from('all of it')).catch(() => {})
  await until(() => got >= 20)
  await sleep(1_200)
  t.ok(sent < 60, `${sent} of 200 were made`)
  t.equal(link.broken, undefined, 'which is no reason to part')
  link.hold(false)
  await until(() => complete)
  t.equal(got, 200)
  await until(() => one.size === 0 && two.size === 0)
})

t.test('a large message arrives whole', async (t) => {
  const bus = new Bus()
  const one = linksOn(t, bus, 'one')
  linksOn(t, bus, 'two', echo(new Map()))
  const parts = Array.from({ length: 64 }, () => randomBytes(128 * 1024))
  const back = await talk(one.open('two'), parts)
  t.equal(digest(back.map((part) => Buffer.from(part).reverse())), digest(parts))
})

t.test('who is not there is lost after a while, and at once if it has said goodbye', async (t) => {
  const bus = new Bus()
  const broken = (link: Link) => new Promise<Broken>((resolve) => (link.onBroken = resolve))
  const one = linksOn(t, bus, 'one')
  const informed = linksOn(t, bus, 'three', () => {}, true)
  const started = performance.now()
  const order: string[] = []
  await Promise.all(
    [one.open('nobody'), informed.open('gone')].map(async (link) => {
      t.equal(await broken(link), 'lost')
      order.push(link.peer)
    }),
  )
  t.ok(performance.now() - started > 4_500, 'it takes a while to be sure')
  t.same(order, ['gone', 'nobody'])
})

t.test('a replica that is there and says nothing is lost; one that was busy is not', async (t) => {
  const bus = new Bus()
  const one = linksOn(t, bus, 'one')
  const opened: Link[] = []
  linksOn(t, bus, 'two', (link) => opened.push(link))
  const link = one.open('two')
  const broken: Broken[] = []
  link.onBroken = (why) => broken.push(why)
  link.send(Buffer.from('x')).catch(() => {})
  await until(() => opened.length === 1)
  await sleep(6_000)
  t.same(broken, [], 'it gives signs of life without an answer')
  bus.deafen('p:r:two')
  await until(() => broken.length > 0)
  t.same(broken, ['lost'])
})

t.test('while Redis is away nobody is lost, and nobody is waited for without end', async (t) => {
  const bus = new Bus()
  const one = linksOn(t, bus, 'one')
  const asked = new Map<string, number>()
  linksOn(t, bus, 'two', echo(asked))
  bus.working = false
  const broken = await new Promise<Broken>((resolve) => (one.open('two').onBroken = resolve))
  t.equal(broken, 'away')
  setTimeout(() => (bus.working = true), 1_000)
  const back = await talk(one.open('two'), [Buffer.from('abc')])
  t.equal(String(back[0]), 'cba', 'a moment is nothing')
  t.equal(asked.size, 1)
})

t.test('parts that have not been acknowledged are kept, and those that came too early wait', async (t) => {
  const outgoing = new Outgoing()
  const shown = (parts: readonly Numbered[]) => parts.map(({ number, part }) => `${number}${part}`)
  for (const text of ['a', 'b', 'c']) outgoing.add(Buffer.from(text))
  t.same(shown(outgoing.again(0)), [], 'what has not been sent cannot be sent again')
  t.same(shown(outgoing.next()), ['1a', '2b', '3c'])
  t.same(shown(outgoing.next()), [])
  outgoing.acknowledge(2)
  t.same(shown(outgoing.again(0)), ['3c'])
  t.same(shown(outgoing.again(60_000)), [], 'and not all the time')
  outgoing.acknowledge(99)
  t.ok(outgoing.empty)
  t.same(shown(outgoing.repair()), [], 'nothing is lost any more')
  outgoing.full = true
  outgoing.add(Buffer.from('d'))
  t.same(shown(outgoing.next()), [])
  outgoing.full = false
  t.same(shown(outgoing.next()), ['4d'])

  const many = new Outgoing()
  for (let n = 1; n <= 100; n++) many.add(Buffer.from('x'))
  t.equal(many.next().length, 100)
  const numbers = (parts: readonly Numbered[]) => [parts[0]?.number, parts.at(-1)?.number]
  t.same(numbers(many.again(0)), [1, 32])
  t.same(shown(many.repair()), [], 'until some have arrived')
  many.acknowledge(10)
  t.same(numbers(many.repair()), [33, 42], 'the rest follows at once')
  many.add(Buffer.from('new'))
  many.next()
  many.acknowledge(100)
  t.same(shown(many.repair()), [], 'what was sent after the loss is not lost')

  const incoming = new Incoming()
  const texts = (parts: Uint8Array[]) => parts.map(String)
  t.same(incoming.take(2, Buffer.from('b')), [])
  t.same(incoming.take(3, Buffer.from('c')), [])
  t.same(
    texts(incoming.take(1, Buffer.from('a'))),
    ['a', 'b', 'c'].map((text) => String(Buffer.from(text))),
  )
  t.same(incoming.take(2, Buffer.from('b')), [], 'once is enough')
  t.same(incoming.take(1_000_000, Buffer.from('x')), [], 'so far ahead nobody can be')
  t.equal(incoming.arrived, 3)
})
