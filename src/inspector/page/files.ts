/** Exports, and files opened or dropped on the page. */
import { exported, open } from './feed.js'
import { eventsOf, say, source } from './state.js'

/**
 * Makes the browser save the matching calls: as the bridge stores them, or without a bridge, as the page has them. `name` is
 * a part of the file name.
 */
export function save(format: 'jsonl' | 'har', filter: string, name = ''): void {
  saveWith(format, filter, `mcp-bridge${name}.${format}`).catch(() => say(REFUSED))
}

async function saveWith(format: 'jsonl' | 'har', filter: string, name: string): Promise<void> {
  const { kind } = source.value
  const response = kind === 'live' ? await exported(format, filter) : undefined
  if (response ? !response.ok : format === 'har') return say(REFUSED)
  saveAs(response ? await response.blob() : ofPage(filter), name)
  if (!response && kind !== 'file') say(OF_PAGE)
}

const REFUSED = 'The bridge refused the export'
/** Warns that an export without a bridge lacks texts. */
const OF_PAGE = 'Exported from this page, without message texts: the bridge did not answer'

/** The events of the page, one per line. */
function ofPage(filter: string): Blob {
  return new Blob(
    eventsOf(filter).map((seen) => `${JSON.stringify(seen)}\n`),
    { type: 'application/jsonl' },
  )
}

function saveAs(file: Blob, name: string): void {
  const url = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** Shows the events of a file instead of those of the bridge. */
export function show(file: File): void {
  open(file)
    .then((problem) => say(problem ?? `Showing ${file.name} instead of the bridge`))
    .catch(() => say(`Cannot read ${file.name}`))
}

/** Opens files dropped on the page. */
export function acceptFiles(): void {
  addEventListener('dragover', (event) => event.preventDefault())
  addEventListener('drop', (event) => {
    event.preventDefault()
    const [file] = event.dataTransfer?.files ?? []
    if (file) show(file)
  })
}
