/** The bridge as a server on a pipe: one JSON-RPC message per line in and out (MCP, basic/transports/stdio). */
import type { Readable, Writable } from 'node:stream'
import type { Upstream } from '../protocol/call.js'
import { type Compat, classifyLine } from '../protocol/classify.js'
import { Fault } from '../protocol/fault.js'
import { encodeLine, LineDecoder, TOO_LONG } from '../rpc/lines.js'
import {
  error as errorMessage,
  type Id,
  idKey,
  type Message,
  type Params,
  type Request,
  readId,
} from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { raw } from '../rpc/splice.js'
import { idToAnswer, readMessage } from './inbound.js'
import { ModernDownstream } from './modern.js'
import type { Logger } from './record.js'

export interface PipeOptions {
  input: Readable
  output: Writable
  upstream: Upstream
  compat: Pick<Compat, 'draftErrorCodes'>
  log: Logger
  /** Bytes of one line. */
  lineLimit: number
}

/** Everybody on a pipe is the user who started the process. */
const PRINCIPAL = 'local'

/** Serves what comes in until the input ends; then gives up what is still open. Resolves when that is done. */
export async function servePipe({ input, output, upstream, compat, log, lineLimit }: PipeOptions): Promise<void> {
  const modern = new ModernDownstream(upstream, compat)
  const running = new Map<string, AbortController>()
  const answers = new Set<Promise<void>>()
  const decoder = new LineDecoder(lineLimit)

  const write = (message: Wire): Promise<void> | undefined => {
    const line = encodeLine(message)
    const pieces = typeof line === 'string' ? [line] : line
    output.cork()
    const taken = pieces.map((piece) => output.write(piece)).every(Boolean)
    output.uncork()
    if (taken || output.destroyed) return undefined
    return new Promise((resolve) => {
      const done = () => {
        output.off('drain', done).off('close', done)
        resolve()
      }
      output.on('drain', done).on('close', done)
    })
  }

  async function answer(request: Request): Promise<void> {
    const controller = new AbortController()
    running.set(idKey(request.id), controller)
    try {
      const arrived = { principal: PRINCIPAL, abort: controller, log, transport: 'stdio' as const }
      for await (const frame of modern.answer(request, arrived)) {
        // Nothing may follow a cancellation, not even that it was received. A call that was given up is another matter.
        const { aborted, reason } = controller.signal
        if (aborted && !(reason instanceof Fault)) return
        await write(frame.text)
      }
    } finally {
      running.delete(idKey(request.id))
    }
  }

  function take(message: Message): void {
    const verdict = classifyLine(message, 'none')
    if (verdict.era === 'legacy') {
      if (message.kind === 'request') throw new Fault('invalidRequest', 'Sessions are not served yet')
      return
    }
    if (message.kind === 'notification') {
      if (message.method === 'notifications/cancelled') cancel(message.params)
      else modern.notify(message, { principal: PRINCIPAL })
    } else if (message.kind === 'request') {
      if (running.has(idKey(message.id))) throw new Fault('invalidRequest', 'A request with this id is still open')
      const answering = answer(message).catch((error: unknown) => log.error({ err: error }, 'answer failed'))
      answers.add(answering)
      answering.finally(() => answers.delete(answering)).catch(() => {})
    }
  }

  function cancel(params: Params): void {
    const id = typeof params === 'string' ? undefined : raw(params, 'requestId')
    const known = id === undefined ? undefined : readId(id)
    if (known) running.get(idKey(known))?.abort()
  }

  /** Refuses a line. Where nothing in it says whom to answer, saying nothing is safest: old clients choke on `null`. */
  async function refuse(error: unknown, id: Id | undefined): Promise<void> {
    const fault = Fault.from(error)
    if (fault.fault === 'internal') log.error({ err: fault.cause }, 'line not understood')
    else log.warn({ why: fault.message }, 'line refused')
    if (id !== undefined) await write(errorMessage(id, fault.toRpcError(compat.draftErrorCodes)))
  }

  async function line(bytes: readonly Uint8Array[]): Promise<void> {
    let id: Id | undefined
    try {
      const message = readMessage(bytes)
      id = idToAnswer(message)
      take(message)
    } catch (error) {
      await refuse(error, id)
    }
  }

  for await (const chunk of input) {
    for (const bytes of decoder.push(chunk as Uint8Array)) {
      if (bytes === TOO_LONG) await refuse(new Fault('bodyTooLarge', `A line of over ${lineLimit} bytes`), undefined)
      else await line(bytes)
    }
  }
  for (const controller of running.values()) controller.abort()
  await Promise.all(answers)
}
