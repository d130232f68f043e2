/** The log of an application as the log of the bridge. */
import type { Log } from '../../base/log/events.js'
import type { Logger } from './options.js'

type Level = 'debug' | 'info' | 'warn' | 'error'

/** Lines go to a logger, and nowhere without one. `fields` are those of all lines. */
export function logOf(logger: Logger | undefined, fields: object = {}): Log {
  const at = (level: Level) => (more: object, message: string) => logger?.[level]({ ...fields, ...more }, message)
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    fatal: at('error'),
    isLevelEnabled: (level) => logger !== undefined && (logger.isLevelEnabled?.(level) ?? true),
    child: (more) => logOf(logger, { ...fields, ...more }),
  }
}
