/** The bridge as a server on a pipe: one JSON-RPC message per line in and out (MCP, basic/transports/stdio). */
import type { Readable, Writable } from 'node:stream'
import type { Upstream } from '../protocol/call.js'
import { type Compat, classifyLine } from '../protocol/classify.js'
import { Fault } from '../protocol/fault.js'
import { encodeLine, type Line, LineDecoder, TOO_LONG } from '../rpc/lines.js'
import { error as errorMessage, type Id, idKey, type Message, parseMessage, type Request } from '../rpc/message.js'
import { cut, sourceOf, type Wire } from '../rpc/source.js'
import { Conversation } from './conversation.js'
import { idToAnswer, readMessage } from './inbound.js'
import { ModernDownstream } from './modern.js'
import type { Logger } from './record.js'
import { Running } from './running.js'
import type { SessionSettings } from './session.js'

export interface PipeOptions {
  input: Readable
  output: Writable
  upstream: Upstream
  compat: Pick<Compat, 'draftErrorCodes' | 'bareDiscover'>
  log: Logger
  /** Bytes of one line. */
  lineLimit: number
  /** Milliseconds that answers may still take after the input has ended. */
  patience: number
  settings: SessionSettings
}

/** Everybody on a pipe is the user who started the process. */
const PRINCIPAL = 'local'

/**
 * Serves what comes in until the input ends, or the client has closed the output; then what is being answered has some time to
 * end, and the rest is given up. Resolves when that is done.
 */
export async function servePipe(options: PipeOptions): Promise<void> {
  const { input, output, upstream, compat, log, lineLimit, patience, settings } = options
  const modern = new ModernDownstream(upstream, compat)
  const disconnected = upstream.connected?.(PRINCIPAL)
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
        output.off('drain', done).off('close', done).off('error', done)
        resolve()
      }
      output.on('drain', done).on('close', done).on('error', done)
    })
  }

  const conversation = new Conversation({
    upstream,
    sender: { principal: PRINCIPAL },
    transport: 'stdio',
    log,
    settings,
    write,
  })

  async function answerModern(request: Request, bare: boolean): Promise<void> {
    const controller = running.begin(request.id)
    try {
      const arrived = { principal: PRINCIPAL, abort: controller, log, transport: 'stdio' as const, bare }
      for await (const frame of modern.answer(request, arrived)) {
        // Nothing may follow a cancellation, not even that it was received. A call that was given up is another matter.
        const { aborted, reason } = controller.signal
        if (aborted && !(reason instanceof Fault)) return
        await write(frame.text)
      }
    } finally {
      running.end(request.id, controller)
    }
  }

  async function answerInSession(message: Exclude<Message, { kind: 'invalid' }>): Promise<void> {
    const ids = idsIn(message)
    for (const id of ids) inSession.add(id)
    try {
      await conversation.take(message)
    } catch (error) {
      await refuseAloud(Fault.from(error, true), message)
    } finally {
      for (const id of ids) inSession.delete(id)
    }
  }

  function take(message: Message): void {
    const { revision } = conversation
    const verdict = classifyLine(message, revision ? { revision } : 'none', compat)
    if (message.kind === 'invalid') return
    if (message.kind === 'request' && (running.has(message.id) || inSession.has(idKey(message.id))))
      throw new Fault('invalidRequest', 'A request with this id is still open')
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    // The id alone says whose request is meant: both eras share one space, and no notification has to have an envelope.
    if (cancels && running.cancel(message.params)) return
    if (verdict.era === 'legacy') return inBackground(answerInSession(message))
    if (message.kind === 'request') inBackground(answerModern(message, 'bare' in verdict))
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
    if (fault.row.reason === 'internal_error') log.error({ err: fault.cause }, 'line not understood')
    else log.warn({ why: fault.message }, 'line refused')
    if (aloud) await write(errorMessage(id, fault.toRpcError(compat.draftErrorCodes)))
  }

  /** Whoever sends an array waits for something, though there is no one id to answer under. */
  function refuseAloud(error: unknown, message: Message | undefined): Promise<void> {
    const id = message && idToAnswer(message)
    return refuse(error, id, id !== undefined || message?.kind === 'batch')
  }

  async function takeLine(line: Line): Promise<void> {
    if (line === TOO_LONG)
      return refuse(new Fault('bodyTooLarge', `The line is over ${lineLimit} bytes (limits.lineBytes)`), undefined)
    let message: Message | undefined
    try {
      message = readMessage(line)
      take(message)
    } catch (error) {
      await refuseAloud(error, message)
    }
  }

  let closed = false
  output.on('error', (error) => {
    if (closed) return
    closed = true
    log.warn({ why: error.message }, 'client closed its end of stdout; ending')
    input.destroy()
  })
  try {
    for await (const chunk of input) {
      for (const line of decoder.push(chunk as Uint8Array)) await takeLine(line)
    }
    for (const line of decoder.end()) await takeLine(line)
  } catch (error) {
    if (!closed) log.warn({ why: error instanceof Error ? error.message : String(error) }, 'input broke off; ending')
  }
  if (!closed) await endedWithin(patience, answers)
  disconnected?.()
  running.abortAll()
  conversation.close()
  await Promise.all(answers)
}

/** Waits until all have ended, but no longer than so many milliseconds. */
async function endedWithin(milliseconds: number, answers: Iterable<Promise<void>>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([Promise.all(answers), late])
  clearTimeout(timer)
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
