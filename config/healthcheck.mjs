/**
 * Whether the bridge of this container answers, for HEALTHCHECK: exits with 0 or 1. Where it listens is said by the command
 * line that the container was started with. On stdio it listens nowhere: there it is well as long as it runs, and when it
 * ends the container does.
 */
import { readFileSync } from 'node:fs'
import { argv, exit } from 'node:process'
import { parseArgs } from 'node:util'

const TIMEOUT = 3_000
const EVERYWHERE = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }

const address = listening(readFileSync(argv[2] ?? '/proc/1/cmdline', 'utf8').split('\0'))
if (address === 'stdio') {
  console.log('stdio: it runs, and listens nowhere')
  exit(0)
}
const url = new URL('/healthz', address)
url.hostname = EVERYWHERE[url.hostname] ?? url.hostname
try {
  const { status } = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT) })
  console.log(`${url}: ${status}`)
  exit(status === 200 ? 0 : 1)
} catch (error) {
  console.log(`${url}: ${error.cause?.message ?? error.message}`)
  exit(1)
}

/** Where the bridge answers questions about its health, or stdio. */
function listening(words) {
  const args = words.slice(words.findIndex((word) => word.endsWith('/main.js')) + 1)
  const dashes = args.indexOf('--')
  const string = { type: 'string' }
  const { values } = parseArgs({
    args: dashes < 0 ? args : args.slice(0, dashes),
    // Options with a value and a short name are named for their values, which are not to be taken for options.
    options: {
      admin: string,
      listen: { ...string, short: 'l' },
      config: { ...string, short: 'c' },
      upstream: { ...string, short: 'u' },
      header: { ...string, short: 'H' },
      env: { ...string, short: 'e' },
      server: { ...string, short: 's' },
    },
    allowPositionals: true,
    strict: false,
  })
  const file = values.config === undefined ? {} : JSON.parse(readFileSync(values.config, 'utf8'))
  const listen = values.listen ?? file.listen ?? 'http://127.0.0.1:8080/mcp'
  return listen === 'stdio' ? listen : (values.admin ?? file.admin ?? listen)
}
