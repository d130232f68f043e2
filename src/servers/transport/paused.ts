/**
 * Works around a crash in undici 7: if a server closes a connection while its answer is not being read, an assertion
 * fails that cannot be caught and ends the process (nodejs/undici#5360). Undici 8 has the fix, but requires Node.js
 * 22.19; the bridge supports 20.19.
 */
import type { Socket } from 'node:net'

/** The used part of undici's parser of one connection. */
interface Parser {
  paused: boolean
  ptr: number | null
  llhttp: { llhttp_resume(parser: number): void }
  /** Continues with the received data. It may pause again. */
  resume(): void
}

/** If this connection ends while its parser is paused, the received data is still delivered. */
export function readToTheEnd(socket: Socket): void {
  socket.on('end', () => unpause(socket)).on('close', () => unpause(socket))
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
