/** Why the page shows nothing, and what to do about it, if that is not because nothing has happened. */
import { shown } from '../inspect/words.js'
import { source } from './state.js'

/** Undefined if there are events to show: those of a bridge, or of a file. */
export function whyNothing(): string | undefined {
  const { value: from } = source
  switch (from.kind) {
    case 'no token':
      return 'Open the address that the bridge printed at its start in this tab, or drop an exported JSONL file here.'
    case 'refused':
      return 'The bridge does not know this token: it may have been started again. Open the address that it printed in this tab.'
    case 'waiting':
      return `Not connected: ${shown(from.why)}. The page tries again.`
    case 'connecting':
      return 'Connecting.'
    case 'live':
    case 'file':
      return undefined
  }
}
