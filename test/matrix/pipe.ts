/** A pipe to the bridge: a message is a line, of whichever era. */
import { PassThrough } from 'node:stream'
import type { Bridge } from '../../src/app/bridge.js'
import type { Inbox, Wire } from './wire.js'

export function pipeWire(bridge: Bridge): Wire {
  const input = new PassThrough()
  const output = new PassThrough()
  let served: Promise<void> | undefined
  let rest = ''
  return {
    async open(inbox: Inbox) {
      output.setEncoding('utf8').on('data', (chunk: string) => {
        // To look through all of a large line at each piece of it would take seconds.
        if (!chunk.includes('\n')) {
          rest += chunk
          return
        }
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) inbox.take(line, undefined)
      })
      served = bridge.pipe({ input, output })
    },
    send({ text }) {
      input.write(`${text}\n`)
      return { ended: Promise.resolve({}), hangUp() {} }
    },
    async close() {
      input.end()
      await served
    },
  }
}
