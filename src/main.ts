#!/usr/bin/env node
/** The process: arguments, signals, exit codes. The only file that touches `process`. */
import { readFileSync } from 'node:fs'
import process from 'node:process'
import type { Logger } from 'pino'
import { Bridge } from './app.js'
import { type Command, HELP, parseCommand, UsageError } from './cli.js'
import { ConfigError, parseListen, type Settings, unknownKeys } from './config.js'
import { describe, inspect } from './inspect.js'
import { createLog } from './log.js'
import { Fault } from './protocol/fault.js'
import { ChannelError } from './upstream/channel.js'

const EXIT = { ok: 0, failed: 1, usage: 2, config: 78 }
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

try {
  await run(parseCommand(process.argv.slice(2), process.env))
} catch (error) {
  process.exitCode = complain(error)
}

async function run(command: Command): Promise<void> {
  switch (command.kind) {
    case 'help':
      process.stdout.write(HELP)
      return
    case 'version':
      process.stdout.write(`${version}\n`)
      return
    case 'check': {
      const ignored = unknownKeys(command.settings).map(({ path, message }) => `  ${path} ${message}\n`)
      process.stdout.write(`${command.file} is right.\n${ignored.join('')}`)
      return
    }
    case 'probe':
      return probe(command.settings, command.json)
    case 'run':
      return serve(command.settings)
  }
}

async function probe(settings: Settings, json: boolean): Promise<void> {
  const log = await createLog(
    { ...settings.log, level: settings.log.level === 'info' ? 'error' : settings.log.level },
    terminal(),
  )
  const bridge = new Bridge(settings, { log, version, env: process.env })
  if (terminal() && !json) process.stderr.write(`Asking ${bridge.server.target} …\n`)
  try {
    const inspection = await inspect(bridge.server)
    process.stdout.write(`${json ? JSON.stringify(inspection, null, 2) : describe(bridge.server.target, inspection)}\n`)
  } finally {
    await bridge.close()
  }
}

async function serve(settings: Settings): Promise<void> {
  const log = await createLog(settings.log, terminal())
  for (const { path, message } of unknownKeys(settings)) log.warn({ path }, message)
  const bridge = new Bridge(settings, { log, version, env: process.env })
  const listen = parseListen(settings.listen)
  const stop = stopper(bridge)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info({ signal }, 'stopping')
      stop().catch(() => process.exit(EXIT.failed))
    })
  }
  const ready = bridge.server.warmUp()
  ready.catch(() => {})
  try {
    if (listen.kind === 'stdio') {
      const piped = bridge.pipe({ input: process.stdin, output: process.stdout })
      await Promise.race([ready.then(() => piped), piped])
      return await stop()
    }
    announce(log, settings, bridge, await bridge.listen(listen))
    const verdict = await ready
    if (verdict) log.info({ era: verdict.era, revision: verdict.revision, why: verdict.why }, 'server ready')
    else log.info({}, 'what the server speaks is found out when somebody calls who has credentials for it')
  } catch (error) {
    process.exitCode = complain(error)
    await stop()
  }
}

/** Ends the process, gently. Each further cause to end it, be it a signal or the end of the input, leaves less time. */
function stopper(bridge: Bridge): () => Promise<void> {
  let causes = 0
  return async () => {
    if (++causes > 2) process.exit()
    await bridge.close(causes > 1)
    process.exit()
  }
}

/** Says where to go from here. */
function announce(log: Logger, { log: { format }, auth }: Settings, { server }: Bridge, url: string): void {
  const token = auth === undefined ? '' : ' -H "authorization: Bearer $TOKEN"'
  const curl = `curl -s ${url} -H 'content-type: application/json'${token} -d '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'`
  if (format === 'pretty' || (format === 'auto' && terminal())) {
    process.stderr.write(`\nmcp-bridge ${version} listens on ${url}\n  for ${server.target}\n\nTry it:\n  ${curl}\n\n`)
  } else {
    log.info({ url, try: curl }, 'listening')
  }
}

/** One sentence for what went wrong and one for what to do, and the exit code for it. */
function complain(error: unknown): number {
  if (error instanceof UsageError) {
    process.stderr.write(`mcp-bridge: ${error.message}\n  mcp-bridge --help shows how it is used.\n`)
    return EXIT.usage
  }
  if (error instanceof ConfigError) {
    const lines = error.issues.map(({ path, message }) => `  ${path}${path && ' '}${message}\n`)
    process.stderr.write(`mcp-bridge: the configuration is not right:\n${lines.join('')}`)
    return EXIT.config
  }
  if (error instanceof Fault) {
    process.stderr.write(`mcp-bridge: ${error.message}\n${reasons(error)}`)
    return EXIT.failed
  }
  if (error instanceof Error && 'code' in error && 'port' in error) {
    const { code, port } = error
    const what = code === 'EADDRINUSE' ? `port ${port} is in use` : `cannot listen on port ${port}: ${error.message}`
    process.stderr.write(`mcp-bridge: ${what}\n  Choose another with --listen http://127.0.0.1:8081/mcp\n`)
    return EXIT.failed
  }
  process.stderr.write(`mcp-bridge: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.failed
}

function reasons({ cause }: Fault): string {
  if (!(cause instanceof ChannelError)) return ''
  const said =
    cause.stderr.length === 0
      ? ''
      : `  It last wrote to stderr:\n${cause.stderr.map((line) => `    ${line}\n`).join('')}`
  const inner =
    cause.cause instanceof Error && !cause.message.includes(cause.cause.message) ? `  ${cause.cause.message}\n` : ''
  return `${inner}${said}  mcp-bridge probe <server> shows how far it gets; --log-level debug tells more.\n`
}

function terminal(): boolean {
  return process.stderr.isTTY === true
}
