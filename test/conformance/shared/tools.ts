/** Tools that answer by themselves: content of each kind, errors, progress, logging, changes of the lists. */
import { setTimeout as sleep } from 'node:timers/promises'
import { image, resource, text, textResult, WAV } from './content.js'
import { part } from './part.js'
import { schema2020 } from './schemas.js'
import { NO_ARGUMENTS, strings, type Tool } from './tool.js'

/** Milliseconds between the notifications of one call. */
const STEP = 50

export const tools: readonly Tool[] = part<Tool>([
  // First, because the suite calls the first tool there is without arguments.
  {
    definition: { name: 'test_simple_text', description: 'Returns text', inputSchema: NO_ARGUMENTS },
    call: () => textResult('This is a simple text response for testing.'),
  },
  {
    definition: { name: 'test_image_content', description: 'Returns an image', inputSchema: NO_ARGUMENTS },
    call: () => ({ content: [image] }),
  },
  {
    definition: { name: 'test_audio_content', description: 'Returns a sound', inputSchema: NO_ARGUMENTS },
    call: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  },
  {
    definition: { name: 'test_embedded_resource', description: 'Returns a resource', inputSchema: NO_ARGUMENTS },
    call: () => ({
      content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
    }),
  },
  {
    definition: {
      name: 'test_multiple_content_types',
      description: 'Returns text, an image and a resource',
      inputSchema: NO_ARGUMENTS,
    },
    call: () => ({
      content: [
        text('Multiple content types test:'),
        image,
        resource('test://mixed-content-resource', 'application/json', JSON.stringify({ test: 'data', value: 123 })),
      ],
    }),
  },
  {
    definition: { name: 'test_error_handling', description: 'Always fails', inputSchema: NO_ARGUMENTS },
    call: () => ({ isError: true, content: [text('This tool intentionally returns an error for testing')] }),
  },
  {
    definition: { name: 'test_tool_with_progress', description: 'Reports progress', inputSchema: NO_ARGUMENTS },
    async call({ progress }) {
      for (const done of [0, 50, 100]) {
        if (done > 0) await sleep(STEP)
        await progress(done, 100, `${done} of 100 done`)
      }
      return textResult('All of it is done.')
    },
  },
  {
    definition: { name: 'test_tool_with_logging', description: 'Logs three times', inputSchema: NO_ARGUMENTS },
    async call({ log }) {
      await log.info('Tool execution started')
      await sleep(STEP)
      await log.info('Tool processing data')
      await sleep(STEP)
      await log.info('Tool execution completed')
      return textResult('Logged three times.')
    },
  },
  {
    definition: { name: 'test_logging_tool', description: 'Logs whatever the level', inputSchema: NO_ARGUMENTS },
    // In an era with sessions, what a client sees of this is what the bridge lets pass.
    async call({ log }) {
      await log.onCall('Written on the stream of the call', 'test_logging_tool')
      return textResult('Logged once.')
    },
  },
  {
    definition: {
      name: 'json_schema_2020_12_tool',
      description: 'Has an input schema that uses much of JSON Schema 2020-12',
      inputSchema: schema2020,
    },
    call: ({ arguments: given }) => textResult(`Called with ${JSON.stringify(given)}`),
  },
  {
    definition: {
      name: 'test_header_parameter',
      description: 'Has a parameter that is mirrored into a header',
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', description: 'Any word', 'x-mcp-header': 'Region' } },
        required: ['region'],
      },
    },
    call: ({ arguments: { region } }) => textResult(`The region is ${String(region)}.`),
  },
  {
    definition: {
      name: 'test_trigger_tool_change',
      description: 'Adds a tool to the list, or takes it away again',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ changes }) {
      await changes.toggleTool()
      return textResult(`There is ${changes.tool ? 'one more tool' : 'one tool less'} now.`)
    },
  },
  {
    definition: {
      name: 'test_trigger_prompt_change',
      description: 'Adds a prompt to the list, or takes it away again',
      inputSchema: NO_ARGUMENTS,
    },
    async call({ changes }) {
      await changes.togglePrompt()
      return textResult(`There is ${changes.prompt ? 'one more prompt' : 'one prompt less'} now.`)
    },
  },
  {
    definition: { name: 'greet', description: 'Greets at once', inputSchema: strings({ name: 'Whom' }) },
    call: ({ arguments: { name } }) => textResult(`Hello, ${String(name)}!`),
  },
])

/** The tool that comes and goes. */
export const changingTool: Tool = {
  definition: { name: 'test_sometimes_there', description: 'Comes and goes', inputSchema: NO_ARGUMENTS },
  call: () => textResult('There at the moment.'),
}
