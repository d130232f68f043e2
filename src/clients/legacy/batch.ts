/** Reads and answers batches: several messages in one array, which only 2025-03-26 has (basic, batching). */
import { Fault } from '../../base/fault/fault.js'
import {
  type Batch,
  error as errorMessage,
  idKey,
  MAX_BATCH,
  type Notification,
  parseMessage,
  type Request,
  type Response,
} from '../../base/rpc/message.js'
import { cut, join, sourceOf, type Wire } from '../../base/rpc/source.js'
import { withoutAbsent } from '../../mcp/protocol/absent.js'

/** The messages of a batch, by kind. */
export interface SortedBatch {
  requests: Request[]
  others: (Notification | Response)[]
  /** Errors for elements that are invalid or have the id of another request. */
  errors: Wire[]
  message: Batch
}

/** Parses the elements of a batch. Throws a Fault if the batch as a whole is invalid. */
export function readBatch(message: Batch): SortedBatch {
  const { source, elements } = message
  if (elements.length === 0) throw new Fault('invalidRequest', 'An empty array is not a valid message')
  if (elements.length > MAX_BATCH)
    throw new Fault('invalidRequest', `Too many messages in the batch (at most ${MAX_BATCH})`)
  const batch: SortedBatch = { requests: [], others: [], errors: [], message }
  const ids = new Set<string>()
  for (const { start, end } of elements) {
    const element = withoutAbsent(parseMessage(sourceOf(cut(source, start, end))))
    if (element.kind === 'request') {
      if (element.method === 'initialize') throw new Fault('invalidRequest', 'initialize cannot be part of a batch')
      if (ids.has(idKey(element.id)))
        batch.errors.push(refusal('Duplicate id: another request of the batch has it', element))
      else batch.requests.push(element)
      ids.add(idKey(element.id))
    } else if (element.kind === 'invalid') {
      batch.errors.push(refusal(element.why, element))
    } else if (element.kind === 'batch') {
      batch.errors.push(refusal('A batch cannot contain another batch', { id: undefined }))
    } else {
      batch.others.push(element)
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
