/**
 * Tools that ask something while they run, the way servers of this era do: by a request to the client in the middle of
 * the call. Most write it to the stream of the session, as the SDK does unless it is told otherwise; some to the
 * stream of the call.
 */
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'
import { textResult } from './content.js'
import { defaults, enumerations, form } from './schemas.js'
import { NO_ARGUMENTS, strings, type Tool, type ToolCall } from './tool.js'

const NAME = { message: 'What is your name?', requestedSchema: form({ name: 'string' }) }
const CONFIRM = { message: 'Please confirm', requestedSchema: form({ ok: 'boolean' }) }

export const questions: readonly Tool[] = [
  {
    definition: {
      name: 'test_sampling',
      description: 'Asks the model of the client',
      inputSchema: strings({ prompt: 'What to ask' }),
    },
    call: async (call) => textResult(`LLM response: ${await sample(call, String(call.arguments['prompt']))}`),
  },
  {
    definition: {
      name: 'test_elicitation',
      description: 'Asks the user',
      inputSchema: strings({ message: 'What to say to the user' }),
    },
    async call({ server, arguments: { message } }) {
      const requestedSchema = form({ username: 'string', email: 'string' })
      const { action, content } = await server.elicitInput({ message: String(message), requestedSchema })
      return textResult(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`)
    },
  },
  {
    definition: {
      name: 'test_elicitation_sep1034_defaults',
      description: 'Asks the user, with a default for each answer',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server }) {
      const answer = await server.elicitInput({ message: 'Check and change', requestedSchema: defaults })
      return textResult(completed(answer))
    },
  },
  {
    definition: {
      name: 'test_elicitation_sep1330_enums',
      description: 'Asks the user to choose, in each way there is',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server }) {
      const answer = await server.elicitInput({ message: 'Choose', requestedSchema: enumerations })
      return textResult(completed(answer))
    },
  },
  {
    definition: {
      name: 'test_missing_capability',
      description: 'Cannot do anything without the model of the client',
      inputSchema: NO_ARGUMENTS,
    },
    // Does not look whether the client has one; that it has not comes back as the error of the request, and goes out.
    call: async (call) => textResult(await sample(call, 'Anything')),
  },
  {
    definition: {
      name: 'test_streaming_elicitation',
      description: 'Asks the user on the stream of the call',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server, extra: { requestId } }) {
      const answer = await server.elicitInput(CONFIRM, { relatedRequestId: requestId })
      return textResult(completed(answer))
    },
  },
  {
    definition: {
      name: 'test_input_required_result_elicitation',
      description: 'Asks for a name',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server }) {
      const { content } = await server.elicitInput(NAME)
      return textResult(`Hello, ${String(content?.['name'] ?? 'whoever you are')}!`)
    },
  },
  {
    definition: {
      name: 'test_input_required_result_sampling',
      description: 'Asks the model for a capital',
      inputSchema: NO_ARGUMENTS,
    },
    call: async (call) => textResult(await sample(call, 'What is the capital of France?')),
  },
  {
    definition: {
      name: 'test_input_required_result_list_roots',
      description: 'Asks for the roots',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server }) {
      const { roots } = await server.listRoots()
      return textResult(`The roots are ${roots.map(({ uri }) => uri).join(', ')}`)
    },
  },
  ...['test_input_required_result_request_state', 'test_input_required_result_tampered_state'].map(
    // What a modern server keeps in its request state, one of this era simply has in the call that waits.
    (name): Tool => ({
      definition: { name, description: 'Asks for a confirmation', inputSchema: NO_ARGUMENTS },
      async call({ server }) {
        const { action } = await server.elicitInput(CONFIRM)
        return textResult(`state-ok, and the answer is ${action}`)
      },
    }),
  ),
  {
    definition: {
      name: 'test_input_required_result_multiple_inputs',
      description: 'Asks user, model and client at once',
      inputSchema: NO_ARGUMENTS,
    },
    // One on the stream of the session and two on that of the call, so that they come by both.
    async call(call) {
      const options = { relatedRequestId: call.extra.requestId }
      const [{ content }, greeting, { roots }] = await Promise.all([
        call.server.elicitInput(NAME),
        sample(call, 'Generate a greeting', options),
        call.server.listRoots(undefined, options),
      ])
      return textResult(`${greeting} ${String(content?.['name'])}, you have ${roots.length} roots.`)
    },
  },
  {
    definition: {
      name: 'test_input_required_result_multi_round',
      description: 'Asks one thing after the other',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ server, extra: { requestId } }) {
      const options = { relatedRequestId: requestId }
      const first = { message: 'Step 1: What is your name?', requestedSchema: form({ name: 'string' }) }
      const second = { message: 'Step 2: What is your favorite color?', requestedSchema: form({ color: 'string' }) }
      const { content: one } = await server.elicitInput(first, options)
      const { content: two } = await server.elicitInput(second, options)
      return textResult(`${String(one?.['name'])} likes ${String(two?.['color'])}.`)
    },
  },
  {
    definition: {
      name: 'test_input_required_result_capabilities',
      description: 'Asks in the ways that the client can answer',
      inputSchema: NO_ARGUMENTS,
    },
    async call(call) {
      const { elicitation, sampling } = call.server.getClientCapabilities() ?? {}
      const answers = await Promise.all([
        ...(elicitation ? [call.server.elicitInput(NAME).then(completed)] : []),
        ...(sampling ? [sample(call, 'What is the capital of France?')] : []),
      ])
      if (answers.length === 0) throw new McpError(ErrorCode.InvalidRequest, 'There is nobody to ask')
      return textResult(answers.join('\n'))
    },
  },
]

/** What the model of the client says. */
async function sample(
  { server }: ToolCall,
  prompt: string,
  options?: { relatedRequestId: string | number },
): Promise<string> {
  const { content } = await server.createMessage(
    { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 },
    options,
  )
  return content.type === 'text' ? content.text : `something that is ${content.type}`
}

function completed({ action, content }: { action: string; content?: unknown }): string {
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`
}
