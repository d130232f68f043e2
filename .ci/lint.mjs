/** Format and mistakes (Biome), types (oxlint) and what nothing uses (knip), all at once: `npm run lint`. One of them has one thread only. */
import { spawn, spawnSync } from 'node:child_process'
import { execPath, exit, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

const TOOL = fileURLToPath(new URL('tool.mjs', import.meta.url))
const RUNS = [
  ['lint', 'biome', 'check', '.'],
  ['lint', 'oxlint', '--type-aware', '--deny-warnings', 'src', 'test'],
  ['knip', 'knip', '-c', '.ci/knip.jsonc'],
]

// Two of them would install the same set.
for (const set of new Set(RUNS.map(([first]) => first))) {
  const { status } = spawnSync(execPath, [TOOL, set], { stdio: 'inherit' })
  if (status !== 0) exit(status ?? 1)
}
const codes = await Promise.all(RUNS.map(told))
exit(codes.find((code) => code !== 0) ?? 0)

/** Runs a program, and shows what it says when it has ended. */
function told(args) {
  const child = spawn(execPath, [TOOL, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      said += chunk
    })
  return new Promise((resolve) => {
    child.once('close', (code) => {
      stdout.write(said)
      resolve(code ?? 1)
    })
  })
}
