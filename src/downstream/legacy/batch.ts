/** Several messages in one array, which only 2025-03-26 knows (basic, batching). */
import { Fault } from '../../protocol/fault.js'
import {
  error as errorMessage,
  idKey,
  MAX_BATCH,
  type Message,
  type Notification,
  parseMessage,
  type Request,
  type Response,
} from '../../rpc/message.js'
import { cut, join, sourceOf, type Wire } from '../../rpc/source.js'

export interface Batch {
  requests: Request[]
  others: (Notification | Response)[]
  /** Answers to elements that are no messages, or whose id another has already. */
  errors: Wire[]
}

/** Takes an array apart. Throws a Fault where it cannot be taken as a whole. */
export function readBatch({ source, elements }: Message & { kind: 'batch' }): Batch {
  if (elements.length === 0) throw new Fault('invalidRequest', 'An empty array is no message')
  if (elements.length > MAX_BATCH) throw new Fault('invalidRequest', `A batch may have ${MAX_BATCH} messages`)
  const batch: Batch = { requests: [], others: [], errors: [] }
  const ids = new Set<string>()
  for (const { start, end } of elements) {
    const message = parseMessage(sourceOf(cut(source, start, end)))
    if (message.kind === 'request') {
      if (message.method === 'initialize') throw new Fault('invalidRequest', 'initialize cannot be part of a batch')
      if (ids.has(idKey(message.id))) batch.errors.push(refusal('Another request of the batch has this id', message))
      else batch.requests.push(message)
      ids.add(idKey(message.id))
    } else if (message.kind === 'invalid') {
      batch.errors.push(refusal(message.why, message))
    } else if (message.kind === 'batch') {
      batch.errors.push(refusal('A batch cannot be part of another', { id: undefined }))
    } else {
      batch.others.push(message)
    }
  }
  return batch
}

function refusal(why: string, { id }: { id: Request['id'] | undefined }): Wire {
  return errorMessage(id, new Fault('invalidRequest', why).toRpcError())
}

/** The answers of a batch as one array. */
export function together(answers: readonly Wire[]): Wire {
  return `[${answers.map(join).join(',')}]`
}
