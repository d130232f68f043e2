/** How much of src one call passes: every layer on the path of a call has to be worth it. */
import { execFile } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

interface Counts {
  files: number
  functions: number
  /** Promises that they make, and objects of classes. */
  promises: number
  objects: number
}

const run = promisify(execFile)
const script = fileURLToPath(new URL('../.ci/call-path.mjs', import.meta.url))
/** At most so many of each. Whoever takes something off the path lowers them. */
const CEILINGS: Record<string, Counts> = {
  'modern HTTP to a program': { files: 51, functions: 159, promises: 6, objects: 4 },
  'modern HTTP to legacy HTTP': { files: 55, functions: 173, promises: 9, objects: 6 },
  'legacy HTTP to modern HTTP': { files: 62, functions: 182, promises: 9, objects: 6 },
  'modern HTTP to modern HTTP': { files: 55, functions: 167, promises: 9, objects: 6 },
  'modern stdio to legacy stdio': { files: 38, functions: 139, promises: 7, objects: 3 },
}

t.test(
  'a warm call passes no more files and functions than it did, and makes no more promises and objects',
  async (t) => {
    const { stdout } = await run(execPath, [script, '--json'])
    const measured = JSON.parse(stdout) as (Counts & { name: string })[]
    t.same(measured.map(({ name }) => name).sort(), Object.keys(CEILINGS).sort())
    for (const { name, ...counts } of measured) {
      const ceiling = CEILINGS[name] as Counts
      for (const [what, count] of Object.entries(counts))
        t.ok(count <= ceiling[what as keyof Counts], `${name}: ${count} ${what}`, { ceiling })
    }
  },
)
