/** Builds the bridge and runs it, again after each change in src: `npm run dev -- --upstream https://example.com/mcp`. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { argv, execPath, exit, stderr } from 'node:process'

/** Milliseconds without another change before a build: editors write several files at once. */
const QUIET = 100

let child
let timer
const restart = async () => {
  if (spawnSync(execPath, ['.ci/build.mjs'], { stdio: ['ignore', 2, 2] }).status !== 0) return
  const before = child
  child = undefined
  if (before?.exitCode === null) {
    before.kill()
    await once(before, 'exit')
  }
  child = spawn(execPath, ['dist/main.js', ...argv.slice(2)], { stdio: 'inherit' })
  child.on(
    'exit',
    (code) => child && stderr.write(`mcp-bridge ended with code ${code}. It starts again after a change in src.\n`),
  )
}

watch('src', { recursive: true }, () => {
  clearTimeout(timer)
  timer = setTimeout(restart, QUIET)
})
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, async () => {
    if (child?.exitCode === null) {
      child.kill(signal)
      await once(child, 'exit')
    }
    exit(0)
  })
await restart()
