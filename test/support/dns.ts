/** A name server of the test's own, and what asks it. */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, RECURSION_DESIRED } from 'dns-packet'
import type { Test } from 'tap'

/** What a name leads to, in the order of the questions: `{ A: [['93.184.215.14'], ['127.0.0.1']] }`. The last one stays. */
export interface Zone {
  [name: string]: { A?: string[][]; AAAA?: string[][]; CNAME?: string }
}

export interface NameServer {
  /** Asks it for the addresses of a name, of both kinds. */
  resolve(host: string): Promise<readonly string[]>
  /** Names that have been asked for, once for each kind. */
  readonly asked: readonly string[]
}

export async function serveNames(t: Test, zone: Zone): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  const turns = new Map<string, number>()
  socket.on('message', (message, { port, address }) => {
    const { id, questions = [] } = decode(message)
    const [question] = questions
    if (question === undefined || (question.type !== 'A' && question.type !== 'AAAA')) return
    const { name, type } = question
    asked.push(`${type} ${name}`)
    const turn = turns.get(`${type} ${name}`) ?? 0
    turns.set(`${type} ${name}`, turn + 1)
    const known = zone[name.toLowerCase()]
    const target = known?.CNAME ?? name
    const rounds = (target === name ? known : zone[target])?.[type] ?? []
    const answers: Answer[] = [
      ...(target === name ? [] : [{ type: 'CNAME' as const, name, data: target, ttl: 0 }]),
      ...(rounds[Math.min(turn, rounds.length - 1)] ?? []).map((data) => ({ type, name: target, data, ttl: 0 })),
    ]
    // NXDOMAIN where nothing is known at all.
    const flags = AUTHORITATIVE_ANSWER | RECURSION_DESIRED | (known === undefined ? 3 : 0)
    socket.send(encode({ type: 'response', id: id ?? 0, flags, questions, answers }), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  t.teardown(() => socket.close())
  const resolver = new Resolver({ timeout: 20_000, tries: 2 })
  resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`])
  const resolve = async (host: string) => {
    const both = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const addresses = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    const [first] = both
    if (addresses.length === 0 && first.status === 'rejected') throw first.reason
    return addresses
  }
  return { resolve, asked }
}
