/** The prompts of the reference servers, and what they suggest for arguments. */
import type { Client } from './client.js'
import { type Content, image, resource, text } from './content.js'
import { part } from './part.js'
import { form } from './schemas.js'

export interface Prompt {
  definition: {
    name: string
    description: string
    arguments?: { name: string; description: string; required: boolean }[]
  }
  get(given: Record<string, string>, client: Client): PromptResult | Promise<PromptResult>
}

type PromptResult = {
  messages: { role: 'user'; content: Content }[]
}

export const prompts: readonly Prompt[] = part<Prompt>([
  {
    definition: { name: 'test_simple_prompt', description: 'Has no arguments' },
    get: () => say(text('This is a simple prompt for testing.')),
  },
  {
    definition: {
      name: 'test_prompt_with_arguments',
      description: 'Has two arguments',
      arguments: [
        { name: 'arg1', description: 'First test argument', required: true },
        { name: 'arg2', description: 'Second test argument', required: true },
      ],
    },
    get: ({ arg1, arg2 }) => say(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  },
  {
    definition: {
      name: 'test_prompt_with_embedded_resource',
      description: 'Embeds a resource',
      arguments: [{ name: 'resourceUri', description: 'URI of the resource', required: true }],
    },
    get: ({ resourceUri = 'test://unnamed' }) =>
      say(
        resource(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      ),
  },
  {
    definition: { name: 'test_prompt_with_image', description: 'Shows an image' },
    get: () => say(image, text('Please analyze the image above.')),
  },
  {
    definition: { name: 'test_input_required_result_prompt', description: 'Asks the user before it is there' },
    async get(_given, client) {
      const { content } = await client.elicit('user_context', {
        message: 'What context should the prompt use?',
        requestedSchema: form({ context: 'string' }),
      })
      return say(text(`Prompt with context: ${String(content?.['context'] ?? 'none')}`))
    },
  },
])

/** The prompt that comes and goes. */
export const changingPrompt: Prompt = {
  definition: { name: 'test_sometimes_there', description: 'Comes and goes' },
  get: () => say(text('There at the moment.')),
}

const WORDS = ['testValue1', 'testValue2', 'paris', 'park', 'party']

/** What an argument could go on to be. */
export function complete(begun: string) {
  const values = WORDS.filter((word) => word.startsWith(begun))
  return { completion: { values, total: values.length, hasMore: false } }
}

function say(...contents: Content[]): PromptResult {
  return { messages: contents.map((content) => ({ role: 'user', content })) }
}
