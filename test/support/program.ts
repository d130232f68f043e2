/** Programs that tests start from sources: files of test that end with `.program.ts`, named without that (`interop/modern-server`). */
import { resolve } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'

/** Arguments with which Node.js starts one: its bundle, if the runner of the tests has made one (.ci/tests.mjs), else its source. */
export function programArgs(name: string): string[] {
  const bundle = env['MCP_BRIDGE_TEST_BUNDLE']
  if (bundle !== undefined) return [resolve(bundle, `${name}.program.mjs`)]
  return ['--import=tsx', fileURLToPath(new URL(`../${name}.program.ts`, import.meta.url))]
}
