/** Reads files that a command line or a configuration names. */
import { readFileSync, statSync } from 'node:fs'

/** What another program has opened for this one, as in `--config <(sops -d config.yaml)`, and what is always empty. */
const OPENED = /^\/(?:dev\/(?:stdin$|null$|fd\/)|proc\/(?:self|\d+)\/fd\/)/

/** A file that is none: a pipe or a device. */
class NoFile extends Error {
  readonly code: string

  constructor(what: string) {
    super(`it is ${what}: reading it may never end`)
    this.code = what
  }
}

/** The bytes of a file. Throws for a pipe, whose writer may never come, and for a device, which may have no end. */
export function readNamed(path: string): Buffer {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found && !found.isFile() && !found.isDirectory() && !OPENED.test(path))
    throw new NoFile(found.isFIFO() ? 'a named pipe' : 'no file')
  return readFileSync(path)
}
