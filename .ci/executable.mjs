/**
 * Makes the program one file that needs no Node.js: `node .ci/executable.mjs [<platform>-<architecture>]`, by default of this machine.
 * It is Node.js with the files of dist inside, and stands in executable/<platform>-<architecture>, beside the licences of its parts.
 *
 * Where this machine can run it, what V8 has compiled of the files while the program served a demo is put into it, too, so that it
 * starts at once.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { arch, argv, chdir, env, execPath, platform, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

/** Where postject puts the files: a mark of Node.js, and the section of macOS. */
const MARK = { sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2', machoSegmentName: 'NODE_SEA' }

chdir(fileURLToPath(new URL('..', import.meta.url)))
const own = `${platform}-${arch}`
const target = argv[2] ?? own
const folder = join('executable', target)
const program = join(folder, target.startsWith('win32-') ? 'mcp-bridge.exe' : 'mcp-bridge')
const work = mkdtempSync(join(tmpdir(), 'mcp-bridge-executable-'))
const begun = new Date()
process.on('exit', () => rmSync(work, { recursive: true, force: true }))

execFileSync(execPath, ['.ci/tool.mjs', 'executable'], { stdio: 'inherit' })
const { inject } = createRequire(resolve('.ci/tools/executable/package.json'))('postject')
const { node, licence } = nodeFor(target)
mkdirSync(folder, { recursive: true })

const files = readdirSync('dist').filter((name) => /\.(?:cjs|js)$|^LICENSES/.test(name))
for (const name of files) copyFileSync(join('dist', name), join(work, name))
await make(files)
if (runs()) await make([...files, ...compiled()])

const licences = readFileSync('dist/LICENSES.txt', 'utf8')
writeFileSync(
  join(folder, 'LICENSES.txt'),
  `${licences}\n${'-'.repeat(80)}\n\nNode.js\n\n${readFileSync(licence, 'utf8')}`,
)
copyFileSync('LICENSE', join(folder, 'LICENSE'))
// What is built from now on is newer: it may be built while this runs.
utimesSync(program, begun, begun)
stdout.write(`${program}\n`)

/** Puts these files of the work folder into Node.js. */
async function make(names) {
  const options = {
    main: 'src/executable.cjs',
    output: join(work, 'blob'),
    disableExperimentalSEAWarning: true,
    assets: Object.fromEntries(names.map((name) => [name, join(work, name)])),
  }
  writeFileSync(join(work, 'options.json'), JSON.stringify(options))
  // Of the version that is inside: the format is not the same in all.
  execFileSync(nodeFor(own).node, ['--experimental-sea-config', join(work, 'options.json')], { stdio: 'pipe' })
  rmSync(program, { force: true })
  copyFileSync(node, program)
  chmodSync(program, 0o755)
  if (platform === 'darwin') execFileSync('codesign', ['--remove-signature', program])
  // Symbols for debuggers are a seventh of it. Without the tool, or for another machine, they stay.
  if (platform === 'linux' && target === own) spawnSync('strip', [program])
  await inject(program, 'NODE_SEA_BLOB', readFileSync(options.output), MARK)
  if (platform === 'darwin') execFileSync('codesign', ['--sign', '-', program])
}

function runs() {
  const { status } = spawnSync(resolve(program), ['--version'])
  return status === 0
}

/** Serves a demo, and gives the names of the files with the code that V8 has compiled meanwhile. */
function compiled() {
  const keeping = {
    NODE_OPTIONS: `--require=${resolve('.ci/keep-code.cjs')}`,
    MCP_BRIDGE_CODE: work,
    XDG_STATE_HOME: work,
  }
  const args = ['demo', '--no-browser', '--listen', 'http://127.0.0.1:0/mcp']
  execFileSync(resolve(program), args, { stdio: 'pipe', env: { ...env, ...keeping } })
  return readdirSync(work).filter((name) => name.endsWith('.code'))
}

/** The program of Node.js for a machine, of the version of .ci/tools/node if npm has it, and its licence. */
function nodeFor(wanted) {
  const name = `node-${wanted.replace('win32', 'win')}`
  const { packages } = JSON.parse(readFileSync('.ci/tools/node/package-lock.json', 'utf8'))
  if (!(`node_modules/${name}` in packages)) {
    if (wanted !== own) throw new Error(`An executable for ${wanted} can only be made there`)
    return { node: execPath, licence: resolve(execPath, '../../LICENSE') }
  }
  let set = '.ci/tools/node'
  if (wanted === own) execFileSync(execPath, ['.ci/tool.mjs', 'node'], { stdio: 'inherit' })
  else {
    set = join(work, 'node')
    mkdirSync(set)
    for (const file of ['package.json', 'package-lock.json'])
      copyFileSync(join('.ci/tools/node', file), join(set, file))
    const [os, cpu] = wanted.split('-')
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', `--os=${os}`, `--cpu=${cpu}`], {
      cwd: set,
    })
  }
  const root = join(set, 'node_modules', name)
  return { node: join(root, wanted.startsWith('win32') ? 'bin/node.exe' : 'bin/node'), licence: join(root, 'LICENSE') }
}
