/** Turns notifications of a server into events of the inspector's client. */
import { isRecord } from '../record.js'
import type { JsonRecord, TryEvent } from './types.js'

/** The event of a notification; undefined for notifications that are not shown. `call`: the call that it came with. */
export function eventOf({ method, params }: JsonRecord, call: number | undefined): TryEvent | undefined {
  const { progressToken, progress, total, message, level, logger, data } = isRecord(params) ? params : {}
  if (method === 'notifications/progress')
    return {
      kind: 'progress',
      call: typeof progressToken === 'number' ? progressToken : (call ?? 0),
      progress: Number(progress),
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    }
  if (method === 'notifications/message')
    return { kind: 'log', level: String(level), ...(typeof logger === 'string' && { logger }), data }
  if (/list_changed$|\/updated$/.test(String(method)))
    return { kind: 'changed', method: String(method), params: isRecord(params) ? params : {} }
  return undefined
}
