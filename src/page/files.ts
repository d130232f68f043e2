/** Files: exports of the bridge, and those that are opened or dropped on the page. */
import { exported, open } from './feed.js'
import { say } from './state.js'

/** Has the browser save what the bridge has kept of the calls that match. `name` becomes a part of the name of the file. */
export function save(format: 'jsonl' | 'har', filter: string, name = ''): void {
  exported(format, filter)
    .then((file) => {
      if (!file) return say('The bridge did not give the export')
      const url = URL.createObjectURL(file)
      const link = document.createElement('a')
      link.href = url
      link.download = `mcp-bridge${name}.${format}`
      link.click()
      URL.revokeObjectURL(url)
    })
    .catch(() => say('The bridge did not give the export'))
}

/** Shows the events of a file in place of those of the bridge. */
export function show(file: File): void {
  open(file)
    .then((problem) => say(problem ?? `${file.name} is shown, and not the bridge`))
    .catch(() => say(`${file.name} cannot be read`))
}

/** Shows files that are dropped on the page. */
export function acceptFiles(): void {
  addEventListener('dragover', (event) => event.preventDefault())
  addEventListener('drop', (event) => {
    event.preventDefault()
    const [file] = event.dataTransfer?.files ?? []
    if (file) show(file)
  })
}
