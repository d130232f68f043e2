/** Streamable HTTP without sessions. */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { Changes } from '../shared/changes.js'
import { listen, report } from './listen.js'
import { createServer } from './server.js'
import { Tasks } from './tasks.js'

/** Listens until the process ends; 0 stands for any free port. Resolves to the address of the endpoint. */
export async function serveHttp(port: number): Promise<string> {
  const changes = new Changes()
  const tasks = new Tasks()
  const handler = createMcpHandler(() => createServer({ changes, tasks }), { legacy: 'reject', onerror: report })
  changes.watch({ tools: () => handler.notify.toolsChanged(), prompts: () => handler.notify.promptsChanged() })
  return listen(handler, port)
}
