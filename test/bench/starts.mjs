/**
 * How long a start takes: `node --import tsx test/bench/starts.mjs [--runs N] [--node <Node.js>]… [--executable <path>]…`, by default of the built
 * program on this Node.js. Milliseconds from the start of the process to its first answer: of a server on its pipe, of a bridge in front
 * of it between pipes, and of one over HTTP, as the median, with quartiles, and the least, which other work on the machine disturbs least.
 * Seconds of CPU of `--version` and `--help`. All in turn; the first round does not count.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { argv, execPath, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort } from '../support/free-port.ts'

const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const { values } = parseArgs({
  args: argv.slice(2),
  options: {
    runs: { type: 'string', default: '9' },
    node: { type: 'string', multiple: true },
    executable: { type: 'string', multiple: true, default: [] },
  },
})
const nodes = values.node ?? (values.executable.length > 0 ? [] : [execPath])
const bridges = [...nodes.map((node) => [node, path('../../dist/main.js')]), ...values.executable.map((file) => [file])]
const SERVER = [execPath, path('stdio-server.mjs'), 'legacy']

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const message = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const CALL = { name: 'small', arguments: {} }
const LEGACY = [
  message('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'starts', version: '1' },
  }),
  message('tools/call', CALL),
]
const MODERN = message('tools/call', { ...CALL, _meta: META })

const rows = [
  ['the server alone', () => onPipe(SERVER, LEGACY)],
  ...bridges.flatMap((bridge) => {
    const name = nameOf(bridge)
    const behind = ['--', ...SERVER]
    return [
      [
        `${name}, between pipes`,
        () => onPipe([...bridge, '--log-level', 'warn', '--listen', 'stdio', ...behind], [MODERN]),
      ],
      [`${name}, over HTTP`, () => overHttp(bridge, behind)],
      [`${name} --version, CPU`, () => cpuOf([...bridge, '--version'])],
      [`${name} --help, CPU`, () => cpuOf([...bridge, '--help'])],
    ]
  }),
].map(([name, measure]) => ({ name, measure, figures: [] }))

for (let run = 0; run <= Number(values.runs); run++)
  for (const row of rows) {
    const figure = await row.measure()
    if (run > 0) row.figures.push(figure)
  }
const [{ figures: alone }] = rows
for (const { name, figures } of rows) {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(figures, share))
  const least = Math.min(...figures)
  const [usual, atLeast] = [middle - quantile(alone, 0.5), least - Math.min(...alone)].map(Math.round)
  const later = name.endsWith('CPU') || figures === alone ? '' : `  ${usual} later, ${atLeast} of the least`
  stdout.write(
    `${name.padEnd(40)} ${middle.toFixed(0).padStart(5)} ms (${low.toFixed(0)}–${high.toFixed(0)}, least ${least.toFixed(0)})${later}\n`,
  )
}

/** Starts a program, and tells it messages one after the other. */
async function onPipe([command, ...args], messages) {
  const begin = performance.now()
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  for (const text of messages) {
    child.stdin.write(`${text}\n`)
    const [line] = await once(lines, 'line')
    if (JSON.parse(line).result === undefined) throw new Error(line)
  }
  const time = performance.now() - begin
  child.kill()
  await once(child, 'exit')
  return time
}

async function overHttp([command, ...args], behind) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  const begin = performance.now()
  const child = spawn(command, [...args, '--log-level', 'warn', '--listen', url, ...behind], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': CALL.name,
  }
  let answer
  while (answer === undefined) {
    answer = await fetch(url, { method: 'POST', headers, body: MODERN }).then(
      (response) => response.text(),
      () => sleep(1),
    )
  }
  const time = performance.now() - begin
  if (!answer.includes('"result"')) throw new Error(answer)
  child.kill()
  await once(child, 'exit')
  return time
}

/** Milliseconds of CPU until the process ends. */
function cpuOf(words) {
  const { stderr } = spawnSync('bash', ['-c', 'TIMEFORMAT="%3U %3S"; time "$@" >/dev/null', 'bash', ...words], {
    encoding: 'utf8',
  })
  return (
    1_000 *
    stderr
      .trim()
      .split(' ')
      .map(Number)
      .reduce((sum, seconds) => sum + seconds)
  )
}

function nameOf([command, script]) {
  if (script === undefined) return 'executable'
  return `Node.js ${spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout.trim()}`
}

function quantile(figures, share) {
  return figures.toSorted((a, b) => a - b)[Math.round((figures.length - 1) * share)]
}
