/** The log: lines of JSON for programs, readable ones on a terminal, always on stderr. */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import type { Settings } from './config.js'

/** Builds the logger. `terminal` says whether somebody is looking. */
export async function createLog({ level, format }: Settings['log'], terminal: boolean): Promise<Logger> {
  const pretty = format === 'pretty' || (format === 'auto' && terminal)
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime }
  return pino(options, pretty ? await readable(terminal) : pino.destination({ fd: 2, sync: true }))
}

/** Loaded only where it is used: it takes longer to load than the rest of the log. */
async function readable(colorize: boolean): Promise<DestinationStream> {
  const { default: prettyStream } = await import('pino-pretty')
  return prettyStream({
    colorize,
    destination: 2,
    sync: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
  })
}
