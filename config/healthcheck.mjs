/**
 * HEALTHCHECK of the image: exits with 0 if the bridge of this container answers, else with 1. It reads the address from the
 * command line of the container. On stdio there is no address, and the check succeeds: the container ends with the bridge.
 */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { argv, env, exit } from 'node:process'
import { parseArgs } from 'node:util'

const TIMEOUT = 3_000
const EVERYWHERE = { '0.0.0.0': '127.0.0.1', '[::]': 'localhost' }

const address = listening(readFileSync(argv[2] ?? '/proc/1/cmdline', 'utf8').split('\0'))
if (address === 'stdio') {
  console.log('stdio: running, no address to check')
  exit(0)
}
const [, socketPath] = /^unix:(?:\/\/)?([^:]+)/.exec(address) ?? []
const url = new URL('/healthz', socketPath === undefined ? address : 'http://localhost')
url.hostname = EVERYWHERE[url.hostname] ?? url.hostname
// The certificate is for the name by which clients know the bridge, and this is its own machine.
const options = { socketPath, agent: false, rejectUnauthorized: false, signal: AbortSignal.timeout(TIMEOUT) }
const asking = (url.protocol === 'https:' ? https : http).get(url, options, ({ statusCode }) => {
  console.log(`${socketPath ?? url}: ${statusCode}`)
  exit(statusCode === 200 ? 0 : 1)
})
asking.on('error', (error) => {
  console.log(`${socketPath ?? url}: ${error.message}`)
  exit(1)
})

/** The address that serves /healthz, or stdio. */
function listening(words) {
  const args = words.slice(words.findIndex((word) => word.endsWith('/main.js')) + 1)
  const dashes = args.indexOf('--')
  const string = { type: 'string' }
  const { values } = parseArgs({
    args: dashes < 0 ? args : args.slice(0, dashes),
    // Lists all options with a value and a short name, so that their values are not read as options.
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
  return listen === 'stdio' ? listen : expanded(values.admin ?? file.admin ?? listen)
}

/** With the environment variables that it refers to; an IPv6 address for a host gets its brackets. */
function expanded(address) {
  return address.replace(/(:\/\/)?\$\{(?:env:)?(\w+)(?::-([^}]*))?\}/g, (_all, start = '', name, fallback = '') => {
    const value = env[name] ?? fallback
    return start + (start && /:.*:/.test(value) && !value.startsWith('[') ? `[${value}]` : value)
  })
}
