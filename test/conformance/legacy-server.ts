/**
 * A server of 2025-11-25 and nothing newer, with everything that the scenarios of the conformance suite ask for:
 * `legacy-server.ts stdio`, or `legacy-server.ts http|sse [--port N]`, which prints its address when it is ready. With
 * `--part 2/5` it has a part of it.
 */
import { parseArgs } from 'node:util'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { serveHttp } from './legacy/http.js'
import { createServer } from './legacy/server.js'
import { serveSse } from './legacy/sse.js'
import { Changes } from './shared/changes.js'

const { values, positionals } = parseArgs({
  options: { port: { type: 'string', default: '0' }, part: { type: 'string' } },
  allowPositionals: true,
})

const transports: Readonly<Record<string, () => Promise<void>>> = {
  async stdio() {
    await createServer(new Changes()).connect(new StdioServerTransport())
    // The transport does not notice, and a call that waits for an answer would keep the process.
    process.stdin.once('end', () => process.exit())
  },
  async http() {
    process.stdout.write(`${await serveHttp(Number(values.port))}\n`)
  },
  async sse() {
    process.stdout.write(`${await serveSse(Number(values.port))}\n`)
  },
}

const serve = transports[positionals[0] ?? '']
if (serve) {
  await serve()
} else {
  process.stderr.write('Usage: legacy-server.ts stdio | http [--port N] | sse [--port N]; [--part i/n]\n')
  process.exitCode = 2
}
