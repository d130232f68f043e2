#!/usr/bin/env node
/**
 * The first file that runs: refuses a Node.js that is too old. Such versions have to understand it, so that they can say so:
 * no static import, no syntax that is newer than import().
 */
const NEEDED = [20, 19]

const version = process.versions.node
const [major, minor] = version.split('.').map(Number)
if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  import('node:module')
    .then(({ createRequire, enableCompileCache }) => {
      const folder = cacheFolder(process.env)
      // Since Node.js 22.8. Without a folder that can be written, it does nothing.
      if (enableCompileCache && folder) enableCompileCache(folder)
      return createRequire(import.meta.url)('./bridge.cjs').run()
    })
    .catch((error) => {
      console.error(error)
      process.exitCode = 1
    })
} else {
  console.error(
    `mcp-bridge needs Node.js ${NEEDED.join('.')} or newer, and this is ${version}: install a newer one from https://nodejs.org`,
  )
  process.exitCode = 1
}

/**
 * Where Node.js keeps compiled code between starts: in the user's own cache, because whoever can write there decides what runs.
 * Undefined where there is none.
 */
function cacheFolder({ XDG_CACHE_HOME: cache, LOCALAPPDATA: local, HOME: home }) {
  const parent = cache || local || (home && `${home}/.cache`)
  return parent && `${parent}/mcp-bridge/compiled`
}
