/**
 * Loaded before a program that is profiled, with `--import profiler.mjs?folder=…`: SIGUSR2 begins a CPU profile, and the next
 * one ends it and writes it into the folder. So what happens at the start is not part of it.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'

const INTERVAL = 200
const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.'
const session = new Session()
let count = 0
let active = false

session.connect()
session.post('Profiler.enable')
session.post('Profiler.setSamplingInterval', { interval: INTERVAL })

process.on('SIGUSR2', () => {
  active = !active
  if (active) session.post('Profiler.start')
  else session.post('Profiler.stop', (_error, result) => write(JSON.stringify(result.profile)))
})

/** @param {string} text */
function write(text) {
  const path = join(folder, `${count++}.json`)
  writeFileSync(`${path}.part`, text)
  // Who waits for the file finds it complete.
  renameSync(`${path}.part`, path)
}
