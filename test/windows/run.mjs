/**
 * Program: checks how the bridge starts and ends programs on Windows. `npm run build`, then `node test/windows/run.mjs` there;
 * `npm run test:windows` does the same under Wine elsewhere. It needs no packages, so that it runs wherever Node.js does.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import process, { env, execPath, kill } from 'node:process'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url))
const BRIDGE = path('../../dist/main.js')
const SERVER = path('server.mjs')
/** Milliseconds after which something that has to happen counts as missing. */
const PATIENCE = 60_000
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'windows', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Windows calls the variable `Path`, and Node.js keeps only one of several spellings. */
const { PATH = env.Path, Path: _, ...others } = env
/** Wine has a taskkill that cannot end descendants. */
const endsDescendants = /\/t\b/i.test(spawnSync('taskkill', ['/?'], { encoding: 'utf8' }).stdout)

const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-windows-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 200 }))
/** What npm writes for a program of a package: a batch file that passes its arguments on. */
for (const name of ['notes.cmd', 'notes.bat'])
  writeFileSync(join(folder, name), `@echo off\r\n"${execPath}" "${SERVER}" %*\r\n`)

const ENVIRONMENT = { ...others, Path: [folder, PATH].join(delimiter), XDG_STATE_HOME: join(folder, 'state') }

/** Starts the bridge on stdio in front of a program. */
function start(...args) {
  const child = spawn(execPath, [BRIDGE, '--listen', 'stdio', ...args], { stdio: 'pipe', env: ENVIRONMENT })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  const waiting = new Map()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line)
    waiting.get(message.id)?.(message)
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let ids = 0
  return {
    child,
    stderr: () => stderr,
    ended: () => soon(ended, () => `the end of the bridge (${stderr})`),
    call(method, params = {}) {
      const id = ++ids
      const answer = new Promise((resolve) => waiting.set(id, resolve))
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } })}\n`)
      return soon(answer, () => `an answer to ${method} (${stderr})`)
    },
  }
}

async function soon(promise, what) {
  const late = Symbol('late')
  const controller = new AbortController()
  const first = await Promise.race([promise, pause(PATIENCE, late, { signal: controller.signal }).catch(() => late)])
  controller.abort()
  assert.notEqual(first, late, `missing: ${what()}`)
  return first
}

/** Calls the tool of test/windows/server.mjs: it says which process it is and which arguments it got. */
async function describe(bridge) {
  const { result, error } = await bridge.call('tools/call', { name: 'describe', arguments: {} })
  assert.equal(error, undefined)
  return JSON.parse(result.content[0].text)
}

function runs(pid) {
  try {
    kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function gone(pid) {
  for (const deadline = Date.now() + PATIENCE; runs(pid); ) {
    assert.ok(Date.now() < deadline, `process ${pid} still runs`)
    await pause(100)
  }
}

const ARGUMENTS = ['two words', '', 'a"b', 'C:\\folder\\', '100%', 'a&b', '(c)', 'ü', '--flag=x y']

for (const [how, command] of Object.entries({
  'an .exe': [execPath, SERVER],
  'a .cmd with its path': [join(folder, 'notes.cmd')],
  'a .bat with its path': [join(folder, 'notes.bat')],
  'a .cmd that is named as npx is': ['notes'],
  'a .cmd by the shell, as in cmd /c npx': ['cmd', '/c', 'notes'],
})) {
  await test(`a program starts and ends with the bridge: ${how}`, async () => {
    const bridge = start('--', ...command, 'plain', '-y')
    const { pid, args } = await describe(bridge)
    assert.deepEqual(args, ['plain', '-y'])
    bridge.child.stdin.end()
    assert.equal(await bridge.ended(), 0)
    await gone(pid)
  })
}

await test('an .exe gets its arguments unchanged', async () => {
  const bridge = start('--', execPath, SERVER, ...ARGUMENTS)
  assert.deepEqual((await describe(bridge)).args, ARGUMENTS)
  bridge.child.stdin.end()
  await bridge.ended()
})

await test('stdio:"…" takes paths with backslashes and quotes', async () => {
  const bridge = start('--upstream', `stdio:"${execPath}" "${SERVER}" "two words" C:\\folder`)
  assert.deepEqual((await describe(bridge)).args, ['two words', 'C:\\folder'])
  bridge.child.stdin.end()
  await bridge.ended()
})

await test('a program that does not end by itself is killed', async () => {
  const bridge = start('--', execPath, SERVER, 'stay')
  const { pid } = await describe(bridge)
  bridge.child.stdin.end()
  assert.equal(await bridge.ended(), 0)
  await gone(pid)
})

await test('its descendants are killed with it', {
  skip: !endsDescendants && 'taskkill cannot do that here',
}, async () => {
  const bridge = start('--', join(folder, 'notes.cmd'), 'stay', 'child')
  const { pid, child } = await describe(bridge)
  assert.ok(runs(pid) && runs(child))
  bridge.child.stdin.end()
  await bridge.ended()
  await Promise.all([gone(pid), gone(child)])
})

await test('a command that does not exist is named', async () => {
  const bridge = start('--', 'no-such-command')
  const { error } = await bridge.call('tools/list')
  assert.match(JSON.stringify(error) + bridge.stderr(), /no-such-command/)
  assert.match(JSON.stringify(error) + bridge.stderr(), /not found/)
  bridge.child.stdin.end()
  await bridge.ended()
})

await test('a configuration file names a program', async () => {
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { notes: { command: execPath, args: [SERVER] } } }))
  const bridge = start('--config', config)
  assert.ok((await describe(bridge)).pid > 0)
  bridge.child.stdin.end()
  await bridge.ended()
})

await test('tail finds a bridge on stdio by its pipe, and the file with the name of the pipe goes with the bridge', async () => {
  const sockets = join(ENVIRONMENT.XDG_STATE_HOME, 'mcp-bridge')
  const bridge = start('--inspect', '--', execPath, SERVER)
  await describe(bridge)
  assert.deepEqual(readdirSync(sockets), [`${bridge.child.pid}.sock`])
  assert.match(readFileSync(join(sockets, `${bridge.child.pid}.sock`), 'utf8'), /^\\\\\.\\pipe\\mcp-bridge-/)
  const tail = spawn(execPath, [BRIDGE, 'tail'], { stdio: 'pipe', env: ENVIRONMENT })
  let said = ''
  const line = new Promise((resolve) =>
    tail.stdout.setEncoding('utf8').on('data', (chunk) => {
      said += chunk
      if (said.includes('tools/call describe')) resolve()
    }),
  )
  tail.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
  })
  await soon(line, () => `a line of tail (${said})`)
  bridge.child.stdin.end()
  assert.equal(await bridge.ended(), 0)
  assert.deepEqual(readdirSync(sockets), [])
  tail.kill()
})
