/**
 * Makes the package for Debian of an executable: `node .ci/deb.mjs [<platform>-<architecture>]`, by default of this machine. It stands
 * beside the executable. It wants dpkg-deb.
 *
 * The service is that of docs/systemd.md, without the credentials of the example.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { arch, argv, chdir, env, execPath, platform, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** Where shells look for completions of packages. */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/mcp-bridge',
  zsh: 'usr/share/zsh/vendor-completions/_mcp-bridge',
  fish: 'usr/share/fish/vendor_completions.d/mcp-bridge.fish',
}
const ARCHITECTURES = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' }

chdir(fileURLToPath(new URL('..', import.meta.url)))
const target = argv[2] ?? `${platform}-${arch}`
const architecture = ARCHITECTURES[target]
if (architecture === undefined) throw new Error(`Debian is not on ${target}`)
const from = join('executable', target)
const version = versionOf(JSON.parse(readFileSync('package.json', 'utf8')).version)
// Of the last change, so that the same sources give the same times.
const time = execFileSync('git', ['log', '-1', '--format=%ct'], { encoding: 'utf8' }).trim()
const root = mkdtempSync(join(tmpdir(), 'mcp-bridge-deb-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
chmodSync(root, 0o755)

const doc = 'usr/share/doc/mcp-bridge'
put('usr/bin/mcp-bridge', readFileSync(join(from, 'mcp-bridge')), 0o755)
put('lib/systemd/system/mcp-bridge.service', unit())
put('etc/mcp-bridge/mcp.json', own('mcp.jsonc'))
put(`${doc}/copyright`, own('copyright'))
put(`${doc}/LICENSES.txt.gz`, zipped(readFileSync(join(from, 'LICENSES.txt'))))
put(`${doc}/changelog.gz`, zipped(readFileSync('CHANGELOG.md')))
put(`${doc}/changelog.Debian.gz`, zipped(changes()))
put('usr/share/lintian/overrides/mcp-bridge', own('lintian-overrides'))
put('usr/share/man/man1/mcp-bridge.1.gz', zipped(readFileSync('dist/mcp-bridge.1')))
for (const [shell, path] of Object.entries(COMPLETIONS))
  put(path, execFileSync(execPath, ['dist/main.js', 'completion', shell]))

const kilobytes = execFileSync('du', ['--apparent-size', '-sk', root], { encoding: 'utf8' }).split('\t')[0]
const facts = { VERSION: version, ARCHITECTURE: architecture, KILOBYTES: kilobytes }
put(
  'DEBIAN/control',
  own('control').replace(/\b[A-Z]{7,}\b/g, (name) => facts[name] ?? name),
)
put('DEBIAN/conffiles', '/etc/mcp-bridge/mcp.json\n')
for (const script of ['postinst', 'prerm', 'postrm']) put(`DEBIAN/${script}`, own(script), 0o755)

const file = join(from, `mcp-bridge_${version}_${architecture}.deb`)
// The highest levels take minutes, for a tenth of the size.
execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z2', '--build', root, file], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: { ...env, SOURCE_DATE_EPOCH: time },
})
stdout.write(`${file}\n`)

function put(path, content, mode = 0o644) {
  const place = join(root, path)
  mkdirSync(dirname(place), { recursive: true, mode: 0o755 })
  writeFileSync(place, content, { mode })
  chmodSync(place, mode)
}

function own(name) {
  return readFileSync(join('.ci/deb', name), 'utf8')
}

/** Debian sorts 1.0.0~beta.1 before 1.0.0. */
function versionOf(text) {
  return `${text.replace('-', '~')}-1`
}

function unit() {
  const [, text] = /^```ini\n(.*?)^```$/ms.exec(readFileSync('docs/systemd.md', 'utf8'))
  return text.replace(/^LoadCredential=.*\n/gm, '')
}

function changes() {
  const date = new Date(Number(time) * 1_000).toUTCString().replace('GMT', '+0000')
  const [maintainer] = /(?<=^Maintainer: ).*$/m.exec(own('control'))
  return `mcp-bridge (${version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- ${maintainer}  ${date}\n`
}

/** The same for the same text: without a time. */
function zipped(text) {
  return gzipSync(text, { level: 9 })
}
