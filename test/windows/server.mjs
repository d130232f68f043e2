/**
 * Program: a legacy server on stdio for test/windows/run.mjs, without packages. Its tool `describe` says which process it is and
 * which arguments it got. With `stay` it does not end when its input does; with `child` it has a child that stays, too.
 */
import { spawn } from 'node:child_process'
import { argv, execPath, pid, stdout } from 'node:process'
import { createInterface } from 'node:readline'

const args = argv.slice(2)
const staying = 'setInterval(() => {}, 1000)'
const child = args.includes('child') ? spawn(execPath, ['-e', staying], { stdio: 'ignore' }).pid : undefined
if (args.includes('stay')) setInterval(() => {}, 1000)

const RESULTS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'described', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [{ name: 'describe', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: JSON.stringify({ pid, child, args }) }] }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const result = RESULTS[method]?.(params)
  const answer = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
  stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`)
}
