/**
 * Works around a crash in undici 7: if a server closes a connection while its answer is not being read, an assertion
 * fails that cannot be caught and ends the process (nodejs/undici#5360). Undici 8 has the fix, but requires Node.js
 * 22.19; the bridge supports 20.19.
 */
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

/** The used part of undici's parser of one connection. */
interface Parser {
  paused: boolean
  ptr: number | null
  llhttp: { llhttp_resume(parser: number): void }
  /** Continues with the received data. It may pause again. */
  resume(): void
}

/** Wraps a connector: if a connection ends while its parser is paused, the received data is still delivered. */
export function readingToTheEnd(connect: buildConnector.connector): buildConnector.connector {
  return (target, done) =>
    connect(target, (...[error, socket]) => {
      // Undici adds its own listeners later, when `done` gives it the socket, so these run first.
      socket?.on('end', () => unpause(socket)).on('close', () => unpause(socket))
      if (error) done(error, null)
      else done(null, socket as Socket)
    })
}

function unpause(socket: Socket): void {
  const parser = parserOf(socket)
  if (!parser?.paused) return
  parser.resume()
  // If the answer ends with its connection, the parser pauses once more although no data remains.
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

function parserOf(socket: Socket): Parser | undefined {
  const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  return key && (socket as unknown as Record<symbol, Parser | undefined>)[key]
}
