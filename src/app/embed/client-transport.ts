/** A client at the other end of a transport: its messages as the lines that are served on stdio. */
import { PassThrough, type Readable, Writable } from 'node:stream'
import type { SdkTransport } from '../../mcp/ports/transport.js'

export interface Lines {
  input: Readable
  output: Writable
}

const END_OF_LINE = 10

/** The lines of a client. The input ends when the transport is closed. */
export function linesOf(transport: SdkTransport): Lines {
  const input = new PassThrough()
  transport.onmessage = (message) => {
    if (!input.writableEnded) input.write(`${JSON.stringify(message)}\n`)
  }
  transport.onclose = () => input.end()
  /** The beginning of a line whose end has not been written. */
  let pieces: Buffer[] = []
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      pieces.push(chunk)
      if (chunk.at(-1) !== END_OF_LINE) return done()
      const line = pieces.length === 1 ? chunk : Buffer.concat(pieces)
      pieces = []
      transport.send(JSON.parse(line.toString()) as object).then(() => done(), done)
    },
  })
  return { input, output }
}
