/** The modern server on a pipe: one server for all that comes through it. */
import { serveStdio as serve } from '@modelcontextprotocol/server/stdio'
import { Changes } from '../shared/changes.js'
import { createServer } from './server.js'
import { Tasks } from './tasks.js'

export function serveStdio(): void {
  const changes = new Changes()
  const tasks = new Tasks()
  const connect = () => {
    const server = createServer({ changes, tasks })
    changes.watch({ tools: () => server.sendToolListChanged(), prompts: () => server.sendPromptListChanged() })
    return server
  }
  serve(connect, { legacy: 'reject', onerror: (error) => process.stderr.write(`${error.message}\n`) })
  // A call that is still at work would keep the process.
  process.stdin.once('end', () => process.exit())
}
