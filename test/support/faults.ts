/** Which fault something throws, if it throws one. */
import { Fault } from '../../src/base/fault/fault.js'

export function faultOf(run: () => unknown): Fault | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}
