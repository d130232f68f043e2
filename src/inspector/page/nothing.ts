/** Explains why the page is empty although there may be events, and what to do. */
import { shown } from '../words.js'
import { source } from './state.js'

/** Undefined if there is a source of events: a bridge or a file. */
export function whyNothing(): string | undefined {
  const { value: from } = source
  switch (from.kind) {
    case 'no token':
      return 'No token. Open the address that the bridge printed, or drop an exported JSONL file here.'
    case 'refused':
      return 'Unknown token: the bridge may have restarted. Open the address that it printed in this tab.'
    case 'waiting':
      return `Not connected: ${shown(from.why)}. Retrying …`
    case 'connecting':
      return 'Connecting …'
    case 'live':
    case 'file':
      return undefined
  }
}
