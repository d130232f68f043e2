/**
 * A server of 2026-07-28 and nothing older, with everything that the scenarios of the conformance suite ask for:
 * `modern-server.program.ts stdio`, or `modern-server.ts http [--port N]`, which prints its address when it is ready.
 */
import { parseArgs } from 'node:util'
import { serveHttp } from './modern/http.js'
import { serveStdio } from './modern/stdio.js'

const { values, positionals } = parseArgs({
  options: { port: { type: 'string', default: '0' }, part: { type: 'string' } },
  allowPositionals: true,
})

const transports: Readonly<Record<string, () => Promise<void> | void>> = {
  stdio: serveStdio,
  async http() {
    process.stdout.write(`${await serveHttp(Number(values.port))}\n`)
  },
}

const serve = transports[positionals[0] ?? '']
if (serve) {
  await serve()
} else {
  process.stderr.write('Usage: modern-server.program.ts stdio | http [--port N]; [--part i/n]\n')
  process.exitCode = 2
}
