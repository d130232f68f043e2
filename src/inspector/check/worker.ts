/** Program of a thread: checks one value against one schema, and reports the result. */
import { parentPort, workerData } from 'node:worker_threads'
import { checked } from './checked.js'

// The time of the check starts here: loading the program may take long on a busy machine.
parentPort?.postMessage('loaded')
const { schema, value } = JSON.parse(workerData as string) as { schema: unknown; value?: unknown }
parentPort?.postMessage(checked(schema, value))
