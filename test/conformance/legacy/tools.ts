/** Tools that answer by themselves: content of each kind, errors, progress, logging, changes of the lists. */
import { setTimeout as sleep } from 'node:timers/promises'
import { image, text, textResult, WAV } from './content.js'
import { schema2020 } from './schemas.js'
import { NO_ARGUMENTS, type Tool } from './tool.js'

/** Milliseconds between the notifications of one call. */
const STEP = 50

export const tools: readonly Tool[] = [
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
      content: [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
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
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: JSON.stringify({ test: 'data', value: 123 }),
          },
        },
      ],
    }),
  },
  {
    definition: { name: 'test_error_handling', description: 'Always fails', inputSchema: NO_ARGUMENTS },
    call: () => ({ isError: true, content: [text('This tool intentionally returns an error for testing')] }),
  },
  {
    definition: { name: 'test_tool_with_progress', description: 'Reports progress', inputSchema: NO_ARGUMENTS },
    async call({ extra }) {
      const progressToken = extra._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progress > 0) await sleep(STEP)
        if (progressToken === undefined) continue
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100, message: `${progress} of 100 done` },
        })
      }
      return textResult('All of it is done.')
    },
  },
  {
    definition: { name: 'test_tool_with_logging', description: 'Logs three times', inputSchema: NO_ARGUMENTS },
    // The usual way, which heeds the level that was set and writes to the stream of the session.
    async call({ server, extra }) {
      await server.sendLoggingMessage({ level: 'info', data: 'Tool execution started' }, extra.sessionId)
      await sleep(STEP)
      await server.sendLoggingMessage({ level: 'info', data: 'Tool processing data' }, extra.sessionId)
      await sleep(STEP)
      await server.sendLoggingMessage({ level: 'info', data: 'Tool execution completed' }, extra.sessionId)
      return textResult('Logged three times.')
    },
  },
  {
    definition: { name: 'test_logging_tool', description: 'Logs whatever the level', inputSchema: NO_ARGUMENTS },
    // Asks nobody which level is wanted: what a client sees of this is what the bridge lets pass.
    async call({ extra }) {
      await extra.sendNotification({
        method: 'notifications/message',
        params: { level: 'info', logger: 'test_logging_tool', data: 'Written on the stream of the call' },
      })
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
]

/** The tool that comes and goes. */
export const changingTool: Tool = {
  definition: { name: 'test_sometimes_there', description: 'Comes and goes', inputSchema: NO_ARGUMENTS },
  call: () => textResult('There at the moment.'),
}
