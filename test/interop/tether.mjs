/** Preloaded into a server: ties it to a test, which thereby learns where it listens and when it ends. */
import { subscribe } from 'node:diagnostics_channel'
import { connect } from 'node:net'
import { env, exit } from 'node:process'

const tether = connect(Number(env['TETHER_PORT']), '127.0.0.1')
tether.on('error', () => {}).on('close', () => exit())
// Held, it keeps the process running even when its input has ended.
if (env['TETHER_HOLDS'] !== 'yes') tether.unref()

subscribe('tracing:net.server.listen:asyncEnd', ({ server }) => {
  // By default a server closes a connection that was silent for 5 s. On a busy machine a call would often meet that end.
  server.keepAliveTimeout = 3_600_000
  tether.write(`${server.address().port}\n`)
})
