/** `mcp-bridge tail` inside the test, with what it prints. */
import { PassThrough } from 'node:stream'
import { type TailOptions, tail } from '../../src/command/tail.js'

/** Runs the command. `isTTY` is whether its output is a terminal. */
export function run(options: Partial<TailOptions>, { isTTY = false, env = {} } = {}) {
  const stdout = Object.assign(new PassThrough(), { isTTY })
  const said = { out: '', err: '' }
  stdout.setEncoding('utf8').on('data', (text: string) => {
    said.out += text
  })
  const err = (text: string) => {
    said.err += text
  }
  const all = { target: undefined, filter: '', json: false, both: false, sockets: undefined, ...options }
  return { said, ended: tail(all, { stdout, err, env }) }
}
