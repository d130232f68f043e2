/**
 * Keeps a server from ending the process: where it closes a connection while nobody reads its answer, undici 7 fails an
 * assertion that nothing can catch (nodejs/undici#5360). Undici 8 has it mended, and wants Node.js 22.19; the bridge runs on 20.19.
 */
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

/** What is used of undici's parser of one connection. */
interface Parser {
  paused: boolean
  ptr: number | null
  llhttp: { llhttp_resume(parser: number): void }
  /** Goes on with what has come. It may have to pause again. */
  resume(): void
}

/** The same connector, whose connections may end while their parser pauses: what has come is then handed on. */
export function readingToTheEnd(connect: buildConnector.connector): buildConnector.connector {
  return (target, done) =>
    connect(target, (...[error, socket]) => {
      // Undici listens when it is given the socket, which is after this.
      socket?.on('end', () => unpause(socket)).on('close', () => unpause(socket))
      if (error) done(error, null)
      else done(null, socket as Socket)
    })
}

function unpause(socket: Socket): void {
  const parser = parserOf(socket)
  if (!parser?.paused) return
  parser.resume()
  // An answer that ends with its connection pauses once more where there is nothing left.
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

function parserOf(socket: Socket): Parser | undefined {
  const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  return key && (socket as unknown as Record<symbol, Parser | undefined>)[key]
}
