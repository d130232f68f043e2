/** Bytes on a socket: half of what a hostile client can say cannot be said through an HTTP library. */
import { connect } from 'node:net'
import { PATIENCE } from './eventually.js'

export interface RawAnswer {
  /** 0 where the connection ended without an answer. */
  status: number
  head: string
  body: string
}

/** Writes the pieces one after the other and reads until the answer is whole or the connection ends. */
export function raw(url: string, pieces: readonly (string | Uint8Array)[]): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    const done = () => {
      clearTimeout(timer)
      socket.destroy()
      const split = text.indexOf('\r\n\r\n')
      const head = split < 0 ? text : text.slice(0, split)
      resolve({
        status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0),
        head,
        body: split < 0 ? '' : text.slice(split + 4),
      })
    }
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`No answer in ${PATIENCE} ms, only: ${text}`))
    }, PATIENCE)
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      const split = text.indexOf('\r\n\r\n')
      if (split >= 0 && length !== undefined && Buffer.byteLength(text.slice(split + 4)) >= Number(length)) done()
    })
    socket.on('close', done)
    socket.on('error', done)
    socket.on('connect', () => {
      socket.setNoDelay(true)
      write(0)
    })
    function write(at: number): void {
      if (at < pieces.length) socket.write(pieces[at] as string, () => setImmediate(() => write(at + 1)))
    }
  })
}

/** A request as text: what is not given is what a modern client sends. */
export function requestText(
  headers: readonly string[],
  body: string | Uint8Array,
  line = 'POST /mcp HTTP/1.1',
): Buffer {
  const bytes = Buffer.from(body)
  return Buffer.concat([
    Buffer.from(`${[line, ...headers, `content-length: ${bytes.length}`].join('\r\n')}\r\n\r\n`),
    bytes,
  ])
}
