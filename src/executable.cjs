/**
 * The first file of the executable, which is Node.js with the files of dist inside: runs the program from there. Files whose code V8 has
 * compiled before take it from beside them (.ci/executable.mjs).
 */
'use strict'
const { join } = require('node:path')
const { getAsset, getAssetKeys, getRawAsset } = require('node:sea')
const { constants, Script } = require('node:vm')

/** Where files say that they are, which stack traces show: there is no such folder. */
const FOLDER = join(process.execPath, 'dist')
const names = new Set(getAssetKeys())
const modules = new Map()

/** What a file of dist exports, or a module of Node.js. */
function take(name) {
  if (!name.startsWith('./')) return require(name)
  const known = modules.get(name)
  if (known) return known.exports
  const module = { exports: {} }
  modules.set(name, module)
  functionOf(name.slice(2)).call(module.exports, module.exports, take, module, join(FOLDER, name), FOLDER)
  return module.exports
}

function functionOf(name) {
  // Files are ASCII.
  const text = Buffer.from(getRawAsset(name)).latin1Slice()
  return new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: join(FOLDER, name),
    cachedData: names.has(`${name}.code`) ? new Uint8Array(getAsset(`${name}.code`)) : undefined,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext()
}

take('./bridge.cjs')
  .run()
  .catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
