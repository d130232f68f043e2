#!/usr/bin/env node
/**
 * The first file that runs: refuses a Node.js that is too old. Such versions have to understand it, so that they can say so:
 * no static import, no syntax that is newer than import().
 *
 * It keeps what V8 has compiled between starts. What Node.js keeps by itself since 22.8 lacks all functions that are compiled when they
 * are first called, which are most of a start. An image has its code from Node.js, in NODE_COMPILE_CACHE.
 */
const NEEDED = [20, 19]
/** Of the contents of all files that are run: the build puts it here. */
const BUILD = 'BUILD'
/** The share by which code has to grow to be kept anew: another command has run, or the first calls. */
const GROWN = 1.1
/** Milliseconds. What ends sooner tells or checks something, and does not look for more code to keep. */
const SERVES = 1000
/** Milliseconds for which code of other builds stays: another version may run, too. */
const KEPT = 30 * 24 * 3600000

const version = process.versions.node
const [major, minor] = version.split('.').map(Number)
if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  Promise.resolve(process.getBuiltinModule('module'))
    .then(({ createRequire, enableCompileCache }) => {
      const { env } = process
      if (enableCompileCache && env.NODE_COMPILE_CACHE) enableCompileCache()
      const load = createRequire(import.meta.url)
      const folder = cacheFolder(env)
      return (folder ? keepingCode(folder, load) : load)('./bridge.cjs').run()
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
 * Where compiled code is kept between starts: in the user's own cache, because whoever can write there decides what runs.
 * Undefined where there is none, or where it is not wanted.
 */
function cacheFolder(env) {
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return undefined
  const parent = env.XDG_CACHE_HOME || env.LOCALAPPDATA || (env.HOME && `${env.HOME}/.cache`)
  return parent && `${parent}/mcp-bridge/compiled`
}

/** Like `require` for the files beside this one, with code of a folder, which is kept there when the process ends. */
function keepingCode(folder, load) {
  const fs = load('node:fs')
  const v8 = load('node:v8')
  const { constants, Script } = load('node:vm')
  const key = `${BUILD}-${process.arch}-${v8.cachedDataVersionTag()}`
  const modules = new Map()
  const scripts = []
  process.on('exit', () => keep({ fs, v8, folder, scripts }))
  return function take(name) {
    if (!name.startsWith('./')) return load(name)
    const known = modules.get(name)
    if (known) return known.exports
    const made = { exports: {} }
    modules.set(name, made)
    const filename = load.resolve(name)
    const file = `${folder}/${name.slice(2)}-${key}`
    const code = readOwn(fs, file)
    // Files are ASCII.
    const script = new Script(
      `(function (exports, require, module, __filename, __dirname) {${fs.readFileSync(filename, 'latin1')}\n})`,
      { filename, cachedData: code, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER },
    )
    scripts.push({ file, script, had: code && !script.cachedDataRejected ? code.length : 0 })
    script
      .runInThisContext()
      .call(made.exports, made.exports, take, made, filename, load('node:path').dirname(filename))
    return made.exports
  }
}

/** A file, if it belongs to the user of this process; else undefined. */
function readOwn(fs, path) {
  let file
  try {
    file = fs.openSync(path, 'r')
    return !process.geteuid || fs.fstatSync(file).uid === process.geteuid() ? fs.readFileSync(file) : undefined
  } catch {
    return undefined
  } finally {
    if (file !== undefined) fs.closeSync(file)
  }
}

function keep({ fs, v8, folder, scripts }) {
  // A bridge that serves has set it (garbage.ts), and code is only valid with the flags of its compilation.
  v8.setFlagsFromString('--heap-growing-percent=0')
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const { file, script, had } of scripts) {
      if (had > 0 && performance.now() < SERVES) continue
      const code = script.createCachedData()
      if (code.length < had * GROWN) continue
      // Another start may read it meanwhile.
      const own = `${file}.${process.pid}`
      fs.writeFileSync(own, code, { mode: 0o600 })
      fs.renameSync(own, file)
      dropOld(fs, folder)
    }
  } catch {
    // The folder cannot be written: the next start compiles again.
  }
}

/** Removes what was written long ago, by builds that nobody starts any more or by processes that were killed. */
function dropOld(fs, folder) {
  for (const name of fs.readdirSync(folder)) {
    const path = `${folder}/${name}`
    if (Date.now() - fs.statSync(path).mtimeMs > KEPT) fs.unlinkSync(path)
  }
}
