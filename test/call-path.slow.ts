/** How much of src one call passes: every layer on the path of a call has to be worth it. */
import { execFile } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

interface Measured {
  name: string
  files: number
  functions: number
}

const run = promisify(execFile)
const script = fileURLToPath(new URL('../.ci/call-path.mjs', import.meta.url))
/** At most so many files and functions. Whoever takes something off the path lowers them. */
const CEILINGS: Record<string, { files: number; functions: number }> = {
  'modern HTTP to a program': { files: 55, functions: 200 },
  'modern HTTP to legacy HTTP': { files: 61, functions: 222 },
  'legacy HTTP to modern HTTP': { files: 69, functions: 239 },
  'modern stdio to legacy stdio': { files: 43, functions: 181 },
}

t.test('a warm call passes no more files and functions than before', async (t) => {
  const { stdout } = await run(execPath, [script, '--json'])
  const measured = JSON.parse(stdout) as Measured[]
  t.same(measured.map(({ name }) => name).sort(), Object.keys(CEILINGS).sort())
  for (const { name, files, functions } of measured) {
    const ceiling = CEILINGS[name] ?? { files: 0, functions: 0 }
    const passed = `${name} passes ${files} files and ${functions} functions`
    t.ok(files <= ceiling.files && functions <= ceiling.functions, passed, { ceiling })
  }
})
