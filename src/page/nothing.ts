/** Explains an empty page that has a cause other than the lack of events, and its remedy. */
import { shown } from '../inspect/words.js'
import { source } from './state.js'

/** Undefined if there is a source of events: a bridge or a file. */
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
