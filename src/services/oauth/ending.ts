/** The faults that sign-ins end with. */
import { Fault } from '../../base/fault/fault.js'
import type { TokenRecord } from './store/record.js'

/** The fault that a sign-in ended with, as its record has it. */
export function endingOf({ fault, message, retryAfter }: Ended): Fault {
  return new Fault(fault, message, retryAfter === undefined ? {} : { retryAfter })
}

type Ended = NonNullable<TokenRecord['ended']>
