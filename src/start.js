#!/usr/bin/env node
/**
 * The first file that runs. Versions of Node.js that are too old for the rest have to understand it, so that they can say so:
 * no static import, no syntax that is newer than import().
 */
const NEEDED = [20, 19]

const version = process.versions.node
const [major, minor] = version.split('.').map(Number)
if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  import('./bridge.js').catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
} else {
  console.error(
    `mcp-bridge needs Node.js ${NEEDED.join('.')} or newer, and this is ${version}: install a newer one from https://nodejs.org`,
  )
  process.exitCode = 1
}
