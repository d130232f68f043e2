/** The program as one file, which is made once for all tests, and again when what is inside has changed. */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { arch, execPath, platform } from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const MADE_OF = ['dist/bridge.cjs', 'src/executable.cjs', '.ci/executable.mjs', '.ci/keep-code.cjs']

/** Its path. */
export function executable(): string {
  const path = join(root, 'executable', `${platform}-${arch}`, platform === 'win32' ? 'mcp-bridge.exe' : 'mcp-bridge')
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (MADE_OF.some((name) => statSync(join(root, name)).mtimeMs > made))
    execFileSync(execPath, ['.ci/executable.mjs'], { cwd: root, stdio: 'pipe' })
  return path
}
