/** A connection for frames between two replicas, and what passes between them. */
import type { RequestListener } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { tagsOf } from '../../src/services/replicas/encryption.js'
import { FramedAnswers } from '../../src/services/replicas/framed-answers.js'
import { FramedRequests } from '../../src/services/replicas/framed-requests.js'
import { prove } from '../../src/services/replicas/proof.js'
import type { Scope } from './scope.js'

const SEALER = new Sealer([keyOf('a secret of all replicas')], 'replica')

export interface Framed {
  to: FramedRequests
  from: FramedAnswers
  /** The side of the sender. */
  socket: Socket
  /** Whether the sender may send further requests. */
  isOpen(): boolean
}

/** Connects with a program. Each record that the sender writes may be `changed` on the way: into another one, several, or none. */
export async function framedTo(
  t: Scope,
  program: RequestListener,
  changed: (bytes: Buffer) => Buffer[] = (bytes) => [bytes],
): Promise<Framed> {
  const proof = prove(SEALER, 'one', { method: 'GET', path: '/', headers: [], body: '' })
  let from: FramedAnswers | undefined
  const server = createServer((socket) => {
    from = new FramedAnswers(socket, { received: tagsOf(SEALER, proof), answer: program, closed: () => {} })
    t.teardown(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const accepted = new Promise((resolve) => server.once('connection', resolve))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const write = socket.write.bind(socket)
  // What is small is written at once.
  socket.write = ((bytes: Buffer) =>
    changed(bytes)
      .map((one) => write(one))
      .at(-1) ?? true) as Socket['write']
  await accepted
  let isOpen = true
  const to = new FramedRequests(socket, tagsOf(SEALER, proof), () => {
    isOpen = false
  })
  return { to, from: from as unknown as FramedAnswers, socket, isOpen: () => isOpen }
}
