/** Serves in a worker: the process that has started it says when to end, and when to read the configuration again. */
import type { ProcessChannel } from '../services/replicas/link.js'
import type { Program } from './program.js'
import { type RunCommand, serve } from './serve.js'
import { Worker } from './worker.js'

/** Serves as a worker, until the process ends or loses the one that has started it. */
export async function serveAsWorker(command: RunCommand, program: Program, primary: ProcessChannel): Promise<void> {
  const worker = await Worker.begin(primary)
  const end = () => void program.end()
  worker.onSignal = end
  primary.on('disconnect', () => worker.end('SIGTERM'))
  const own: Program = Object.assign(Object.create(program) as Program, {
    onSignal: (handle: Worker['onSignal']) => {
      worker.onSignal = handle
    },
    onReload: (handle: () => void) => {
      worker.onReload = handle
    },
  })
  await serve(command, own, { worker })
}
