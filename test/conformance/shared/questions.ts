/**
 * Tools that ask something while they run. They are written as if the answer came in the middle of the call, as in the
 * eras with sessions it does; in the era without, the call is made again with the answers, and they run again.
 */
import type { Answer, Question } from './client.js'
import { textResult } from './content.js'
import { part } from './part.js'
import { defaults, enumerations, form } from './schemas.js'
import { NO_ARGUMENTS, strings, type Tool } from './tool.js'

export const NAME: Question = { message: 'What is your name?', requestedSchema: form({ name: 'string' }) }
const CONFIRM: Question = { message: 'Please confirm', requestedSchema: form({ ok: 'boolean' }) }

export const questions: readonly Tool[] = part<Tool>([
  {
    definition: {
      name: 'test_sampling',
      description: 'Asks the model of the client',
      inputSchema: strings({ prompt: 'What to ask' }),
    },
    async call({ client, arguments: { prompt } }) {
      return textResult(`LLM response: ${await client.sample('answer', String(prompt))}`)
    },
  },
  {
    definition: {
      name: 'test_elicitation',
      description: 'Asks the user',
      inputSchema: strings({ message: 'What to say to the user' }),
    },
    async call({ client, arguments: { message } }) {
      const requestedSchema = form({ username: 'string', email: 'string' })
      const { action, content } = await client.elicit('user', { message: String(message), requestedSchema })
      return textResult(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`)
    },
  },
  {
    definition: {
      name: 'test_elicitation_sep1034_defaults',
      description: 'Asks the user, with a default for each answer',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ client }) {
      const answer = await client.elicit('check', { message: 'Check and change', requestedSchema: defaults })
      return textResult(completed(answer))
    },
  },
  {
    definition: {
      name: 'test_elicitation_sep1330_enums',
      description: 'Asks the user to choose, in each way there is',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ client }) {
      const answer = await client.elicit('choice', { message: 'Choose', requestedSchema: enumerations })
      return textResult(completed(answer))
    },
  },
  {
    definition: {
      name: 'test_missing_capability',
      description: 'Cannot do anything without the model of the client',
      inputSchema: NO_ARGUMENTS,
    },
    // Does not look whether the client has one; that it has not comes out as the error of the call.
    call: async ({ client }) => textResult(await client.sample('anything', 'Anything')),
  },
  {
    definition: {
      name: 'test_streaming_elicitation',
      description: 'Asks the user on the stream of the call',
      inputSchema: NO_ARGUMENTS,
    },
    call: async ({ client }) => textResult(completed(await client.elicit('confirm', CONFIRM, 'call'))),
  },
  {
    definition: {
      name: 'test_input_required_result_elicitation',
      description: 'Asks for a name',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ client }) {
      const { content } = await client.elicit('user_name', NAME)
      return textResult(`Hello, ${String(content?.['name'] ?? 'whoever you are')}!`)
    },
  },
  {
    definition: {
      name: 'test_input_required_result_sampling',
      description: 'Asks the model for a capital',
      inputSchema: NO_ARGUMENTS,
    },
    call: async ({ client }) => textResult(await client.sample('capital_question', 'What is the capital of France?')),
  },
  {
    definition: {
      name: 'test_input_required_result_list_roots',
      description: 'Asks for the roots',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ client }) {
      const roots = await client.roots('client_roots')
      return textResult(`The roots are ${roots.map(({ uri }) => uri).join(', ')}`)
    },
  },
  ...['test_input_required_result_request_state', 'test_input_required_result_tampered_state'].map(
    (name): Tool => ({
      definition: { name, description: 'Asks for a confirmation', inputSchema: NO_ARGUMENTS },
      stateful: true,
      async call({ client }) {
        const { action } = await client.elicit('confirm', CONFIRM)
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
    stateful: true,
    // One on the stream of the session and two on that of the call, so that they come by both.
    async call({ client }) {
      const [{ content }, greeting, roots] = await Promise.all([
        client.elicit('user_name', NAME),
        client.sample('greeting', 'Generate a greeting', 'call'),
        client.roots('client_roots', 'call'),
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
    stateful: true,
    async call({ client }) {
      const first = { message: 'Step 1: What is your name?', requestedSchema: form({ name: 'string' }) }
      const second = { message: 'Step 2: What is your favorite color?', requestedSchema: form({ color: 'string' }) }
      const { content: one } = await client.elicit('step1', first, 'call')
      const { content: two } = await client.elicit('step2', second, 'call')
      return textResult(`${String(one?.['name'])} likes ${String(two?.['color'])}.`)
    },
  },
  {
    definition: {
      name: 'test_input_required_result_capabilities',
      description: 'Asks in the ways that the client can answer',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ client }) {
      const { elicitation, sampling } = client.capabilities
      const answers = await Promise.all([
        ...(elicitation ? [client.elicit('user_name', NAME).then(completed)] : []),
        ...(sampling ? [client.sample('capital_question', 'What is the capital of France?')] : []),
      ])
      if (answers.length === 0) throw new Error('There is nobody to ask')
      return textResult(answers.join('\n'))
    },
  },
])

function completed({ action, content }: Answer): string {
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`
}
