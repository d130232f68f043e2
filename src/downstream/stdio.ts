/** The bridge as a server on a pipe: one JSON-RPC message per line in and out (MCP, basic/transports/stdio). */
import type { Readable, Writable } from 'node:stream'
import type { Upstream } from '../protocol/call.js'
import { type Compat, classifyLine } from '../protocol/classify.js'
import { Fault } from '../protocol/fault.js'
import type { Memory } from '../protocol/memory.js'
import { methodTraits } from '../protocol/methods.js'
import { encodeLine, LineDecoder, TOO_LONG } from '../rpc/lines.js'
import { error as errorMessage, type Id, idKey, type Message, parseMessage, type Request } from '../rpc/message.js'
import { own } from '../rpc/own.js'
import { cut, sourceOf, type Wire } from '../rpc/source.js'
import { Conversation } from './conversation.js'
import type { Frame } from './frames.js'
import { idToAnswer, readMessage } from './inbound.js'
import { ModernDownstream } from './modern.js'
import type { Logger } from './record.js'
import { Running } from './running.js'
import type { SessionSettings } from './session.js'

export interface PipeOptions {
  input: Readable
  output: Writable
  upstream: Upstream
  compat: Pick<Compat, 'draftErrorCodes'>
  log: Logger
  /** Bytes of one line. */
  lineLimit: number
  settings: SessionSettings
  memory: Memory
}

/** Everybody on a pipe is the user who started the process. */
const PRINCIPAL = 'local'

/** Serves what comes in until the input ends; then gives up what is still open. Resolves when that is done. */
export async function servePipe(options: PipeOptions): Promise<void> {
  const { input, output, upstream, compat, log, lineLimit, settings, memory } = options
  const modern = new ModernDownstream(upstream, compat, memory)
  const running = new Running()
  /** Ids of the session's requests that are open: they share one space with those of the modern era. */
  const inSession = new Set<string>()
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

  const conversation = new Conversation({
    upstream,
    sender: { principal: PRINCIPAL },
    transport: 'stdio',
    log,
    memory,
    settings,
    write,
    ended: () => log.warn({}, 'the server has ended the session: the client has to start the bridge again'),
  })

  function answerModern(request: Request): Promise<void> {
    const controller = running.begin(request.id)
    const arrived = { principal: PRINCIPAL, abort: controller, log, transport: 'stdio' as const }
    const id = methodTraits(request.method).endless ? own(request.id) : request.id
    return writeAll(id, modern.answer(request, arrived), controller)
  }

  async function writeAll(id: Id, frames: AsyncIterable<Frame>, controller: AbortController): Promise<void> {
    try {
      for await (const frame of frames) {
        // Nothing may follow a cancellation, not even that it was received. A call that was given up is another matter.
        const { aborted, reason } = controller.signal
        if (aborted && !(reason instanceof Fault)) return
        await write(frame.text)
      }
    } finally {
      running.end(id, controller)
    }
  }

  async function answerInSession(message: Exclude<Message, { kind: 'invalid' }>): Promise<void> {
    const ids = idsIn(message)
    for (const id of ids) inSession.add(id)
    try {
      await conversation.take(message)
    } catch (error) {
      await refuseAloud(error, message)
    } finally {
      for (const id of ids) inSession.delete(id)
    }
  }

  function take(message: Message): void {
    const { revision } = conversation
    const verdict = classifyLine(message, revision ? { revision } : 'none')
    if (message.kind === 'invalid') return
    if (message.kind === 'request' && (running.has(message.id) || inSession.has(idKey(message.id))))
      throw new Fault('invalidRequest', 'A request with this id is still open')
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    // The id alone says whose request is meant: both eras share one space, and no notification has to have an envelope.
    if (cancels && running.cancel(message.params)) return
    if (verdict.era === 'legacy') return inBackground(answerInSession(message))
    if (message.kind === 'request') inBackground(answerModern(message))
    else if (message.kind === 'notification') modern.notify(message, { principal: PRINCIPAL })
  }

  function inBackground(answering: Promise<void>): void {
    const settled = answering.catch((error: unknown) => log.error({ err: error }, 'answer failed'))
    answers.add(settled)
    settled.finally(() => answers.delete(settled)).catch(() => {})
  }

  /** Refuses a line. Where nothing in it says whom to answer, saying nothing is safest: old clients choke on `null`. */
  async function refuse(error: unknown, id: Id | undefined, aloud = id !== undefined): Promise<void> {
    const fault = Fault.from(error)
    if (fault.fault === 'internal') log.error({ err: fault.cause }, 'line not understood')
    else log.warn({ why: fault.message }, 'line refused')
    if (aloud) await write(errorMessage(id, fault.toRpcError(compat.draftErrorCodes)))
  }

  /** Whoever sends an array waits for something, though there is no one id to answer under. */
  function refuseAloud(error: unknown, message: Message | undefined): Promise<void> {
    const id = message && idToAnswer(message)
    return refuse(error, id, id !== undefined || message?.kind === 'batch')
  }

  async function line(bytes: readonly Uint8Array[]): Promise<void> {
    let message: Message | undefined
    try {
      message = readMessage(bytes)
      take(message)
    } catch (error) {
      await refuseAloud(error, message)
    }
  }

  for await (const chunk of input) {
    for (const bytes of decoder.push(chunk as Uint8Array)) {
      if (bytes === TOO_LONG) await refuse(new Fault('bodyTooLarge', `A line of over ${lineLimit} bytes`), undefined)
      else await line(bytes)
    }
  }
  running.abortAll()
  conversation.close()
  await Promise.all(answers)
}

/** What a message's requests are known by. */
function idsIn(message: Exclude<Message, { kind: 'invalid' }>): string[] {
  if (message.kind === 'request') return [idKey(message.id)]
  if (message.kind !== 'batch') return []
  return message.elements.flatMap(({ start, end }) => {
    const element = parseMessage(sourceOf(cut(message.source, start, end)))
    return element.kind === 'request' ? [idKey(element.id)] : []
  })
}
