/** One exchange on a socket of its own: bytes out, in pieces, and what is answered, as far as it says how long it is. */
import { connect } from 'node:net'

export interface Outcome {
  /** `hung`: there was neither an answer nor an end in time. `closed`: the connection ended without an answer. */
  kind: 'answered' | 'closed' | 'hung'
  status: number
  type: string
  body: string
}

/** Milliseconds after which an answer does not come any more. */
const PATIENCE = 20_000
/** Answers before the answer. */
const INTERIM = /^(?:HTTP\/1\.1 1\d\d[^\r]*\r\n(?:[^\r]+\r\n)*\r\n)+/
/** Bytes of an answer that are read. */
const ENOUGH = 1_000_000

export interface ExchangeOptions {
  /** Goes away so many milliseconds after the last piece, without waiting for an answer. */
  leaveAfter?: number
  /** Ends its half of the connection after the last piece. */
  halfClose?: boolean
  /** Milliseconds after which an answer does not come any more. */
  patience?: number
}

export function exchange(url: string, pieces: readonly Buffer[], options: ExchangeOptions = {}): Promise<Outcome> {
  const { hostname, port } = new URL(url)
  const isHead = Buffer.concat(pieces.slice(0, 5)).subarray(0, 5).toString('latin1') === 'HEAD '
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    let isDone = false
    const done = (kind?: 'hung') => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      socket.destroy()
      resolve(outcomeOf(text, kind))
    }
    let timer = setTimeout(done, options.patience ?? PATIENCE, 'hung')
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text = (text + chunk).replace(INTERIM, '')
      if (isWhole(text, isHead) || text.length > ENOUGH) done()
    })
    socket.on('close', () => done())
    socket.on('error', () => done())
    socket.on('connect', () => {
      socket.setNoDelay(true)
      write(0)
    })
    function write(at: number): void {
      const piece = pieces[at]
      if (isDone) return
      if (piece) socket.write(piece, () => setImmediate(write, at + 1))
      else written()
    }
    function written(): void {
      if (options.halfClose) socket.end()
      if (options.leaveAfter === undefined) return
      clearTimeout(timer)
      timer = setTimeout(done, options.leaveAfter)
    }
  })
}

function outcomeOf(text: string, kind?: 'hung'): Outcome {
  const { head, body } = partsOf(text)
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0)
  const type = /^content-type: ([^\r;]+)/im.exec(head)?.[1] ?? ''
  if (status > 0) return { kind: 'answered', status, type, body: utf8(isChunked(head) ? unchunked(body) : body) }
  return { kind: kind ?? 'closed', status, type, body: '' }
}

function partsOf(text: string): { head: string; body: string } {
  const at = text.indexOf('\r\n\r\n')
  return at < 0 ? { head: text, body: '' } : { head: text.slice(0, at), body: text.slice(at + 4) }
}

/** Whether there is all of an answer; of a stream of events, the first of them that answers or acknowledges. */
function isWhole(text: string, isHead: boolean): boolean {
  const { head, body } = partsOf(text)
  if (!text.includes('\r\n\r\n')) return false
  if (isHead) return true
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return body.length >= Number(length)
  if (/^HTTP\/1\.1 (204|304|202)/.test(head) && !isChunked(head)) return true
  if (/^content-type: text\/event-stream/im.test(head) && /^data: .+\r?\n\r?\n/m.test(body)) return true
  return isChunked(head) && body.endsWith('0\r\n\r\n')
}

const isChunked = (head: string) => /^transfer-encoding: chunked/im.test(head)

function unchunked(body: string): string {
  let plain = ''
  for (let at = 0; at < body.length; ) {
    const line = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.slice(at, line), 16)
    if (line < 0 || !(size > 0)) break
    plain += body.slice(line + 2, line + 2 + size)
    at = line + 2 + size + 2
  }
  return plain
}

const utf8 = (latin1: string) => Buffer.from(latin1, 'latin1').toString('utf8')
