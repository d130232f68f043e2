/**
 * For the build of the executable, which loads it into the program by NODE_OPTIONS: lets it run for a while, and keeps what V8 has
 * compiled of its files, in the folder $MCP_BRIDGE_CODE.
 */
const { writeFileSync } = require('node:fs')
const { basename, join } = require('node:path')
const v8 = require('node:v8')
const vm = require('node:vm')

/** Milliseconds. The demo calls servers of both eras each second. */
const WHILE = 3_000

// The program sets flags when it serves, and code is only valid with the flags of its compilation.
v8.setFlagsFromString = () => {}

const scripts = []
vm.Script = class extends vm.Script {
  constructor(text, options) {
    super(text, options)
    scripts.push([basename(options.filename), this])
  }
}

setTimeout(() => {
  for (const [name, script] of scripts)
    writeFileSync(join(process.env.MCP_BRIDGE_CODE, `${name}.code`), script.createCachedData())
  process.exit()
}, WHILE)
