/**
 * Questions in this era: they go out as the result of the call, which is then made again with the answers. So whatever
 * asks is run from its beginning in every round, and is answered at once what has been answered before.
 */
import { randomBytes } from 'node:crypto'
import {
  createRequestStateCodec,
  type InputRequest,
  type InputRequests,
  type InputRequiredResult,
  type InputResponseView,
  inputRequired,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { type Client, said, sampling } from '../shared/client.js'
import { capabilitiesOf } from './call.js'

/** What has been answered in earlier rounds, by key. */
type Answers = Record<string, unknown>

const codec = createRequestStateCodec<Answers>({ key: randomBytes(32), bind: ({ mcpReq: { method } }) => method })

/** Refuses a state that this server has not given out. */
export const verifyState = codec.verify

/** Runs what may ask, and gives what it comes to, or all that it has to be told before it can go on. */
export async function withClient<Result>(
  ctx: ServerContext,
  run: (client: Client) => Result | Promise<Result>,
  { stateful = false } = {},
): Promise<Result | InputRequiredResult> {
  const state = ctx.mcpReq.requestState<Answers | undefined>()
  const responses = stateful && !state ? {} : { ...state, ...ctx.mcpReq.inputResponses }
  const used: Answers = {}
  const inputRequests: InputRequests = {}
  let block: () => void
  const blocked = new Promise<void>((resolve) => {
    block = resolve
  })

  function ask<Kind extends InputResponseView['kind']>(kind: Kind, key: string, request: InputRequest) {
    const answer = inputResponse(responses, key)
    if (isOfKind(answer, kind)) {
      used[key] = responses[key]
      return answer
    }
    inputRequests[key] = request
    // Whatever else is asked at the same time is asked in the same round.
    setImmediate(() => block())
    return new Promise<never>(() => {})
  }

  const client: Client = {
    capabilities: capabilitiesOf(ctx),
    elicit: async (key, question) => ask('elicit', key, inputRequired.elicit(question)),
    sample: async (key, prompt) => {
      const { result } = await ask('sampling', key, inputRequired.createMessage(sampling(prompt)))
      return said(result)
    },
    roots: async (key) => (await ask('roots', key, inputRequired.listRoots())).roots,
  }
  const questions = async () => {
    await blocked
    return inputRequired({ inputRequests, ...(stateful && { requestState: await codec.mint(used, ctx) }) })
  }
  return Promise.race([run(client), questions()])
}

function isOfKind<Kind extends InputResponseView['kind']>(
  answer: InputResponseView,
  kind: Kind,
): answer is Extract<InputResponseView, { kind: Kind }> {
  return answer.kind === kind
}
