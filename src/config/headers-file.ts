/** A file with headers: one "Name: value" in each line, and comments that begin with #. */

/** What a file has. */
export interface HeadersInFile {
  headers: Readonly<Record<string, string>>
  /** The numbers of lines that are neither a header nor a comment. */
  wrong: readonly number[]
}

/** Of a repeated header, the last one counts. */
export function headersIn(text: string): HeadersInFile {
  const wrong: number[] = []
  const headers: [name: string, value: string][] = []
  for (const [i, given] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const line = given.trim()
    if (line === '' || line.startsWith('#')) continue
    const at = line.indexOf(':')
    if (at <= 0) wrong.push(i + 1)
    else headers.push([line.slice(0, at).trim(), line.slice(at + 1).trim()])
  }
  return { headers: Object.fromEntries(headers), wrong }
}
