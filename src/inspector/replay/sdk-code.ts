/** Writes a recorded call as code for either SDK of TypeScript. It is also JavaScript, and runs as it is. */

import { printable, printableJson } from '../../base/texts/printable.js'
import { isModern } from '../../mcp/protocol/eras.js'
import type { JsonRecord } from '../try/types.js'
import type { RecordingCall } from './recording.js'

export type SdkVersion = 'v1' | 'v2'

export interface CodeOptions {
  sdk: SdkVersion
  /** How the client connects: to the address in MCP_BRIDGE_URL, or to a program that it starts. */
  transport: 'http' | 'stdio'
  /** The address requires a token, which is in TOKEN. */
  needsToken: boolean
}

/** The function of a client for each method. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  'completion/complete': 'complete',
  'prompts/get': 'getPrompt',
  'prompts/list': 'listPrompts',
  'resources/list': 'listResources',
  'resources/read': 'readResource',
  'resources/templates/list': 'listResourceTemplates',
  'tools/call': 'callTool',
  'tools/list': 'listTools',
}

/** Questions: the capability that they need, and the schema of SDK v1. */
const QUESTIONS: Readonly<Record<string, { capability: string; declared: JsonRecord; schema: string }>> = {
  'elicitation/create': { capability: 'elicitation', declared: { form: {}, url: {} }, schema: 'ElicitRequestSchema' },
  'sampling/createMessage': { capability: 'sampling', declared: {}, schema: 'CreateMessageRequestSchema' },
  'roots/list': { capability: 'roots', declared: {}, schema: 'ListRootsRequestSchema' },
}

/** Most answers to questions of one method. */
const MAX_CODE_ANSWERS = 100

/** The code; undefined if the SDKs have no function for the method. */
export function sdkCodeOf(call: RecordingCall, options: CodeOptions): string | undefined {
  const { [call.method]: name } = FUNCTIONS
  if (name === undefined || !Object.hasOwn(FUNCTIONS, call.method)) return undefined
  const asked = Object.entries(answersOf(call))
  const lines = [
    ...heading(call, options),
    ...imports(
      asked.map(([method]) => method),
      options,
    ),
    '',
    `const client = new Client({ name: 'repeated', version: '1' }, ${code(settingsOf(call, options))})`,
    ...asked.flatMap(([method, results]) => handlerOf(method, results, options)),
    `await client.connect(${transportOf(options)})`,
    'try {',
    `  console.log(JSON.stringify(await client.${name}(${code(call.params, '  ')}), null, 2))`,
    '} catch (error) {',
    '  console.error(error)',
    '  process.exitCode = 1',
    '}',
    'await client.close()',
  ]
  return `${lines.join('\n')}\n`
}

function heading({ name = '', revision }: RecordingCall, { sdk, transport, needsToken }: CodeOptions): string[] {
  const from = sdk === 'v1' ? '@modelcontextprotocol/sdk' : '@modelcontextprotocol/client'
  const variables = `MCP_BRIDGE_URL=http://127.0.0.1:8080/mcp ${needsToken ? 'TOKEN=… ' : ''}`
  const run = transport === 'http' ? `${variables}node call.mjs` : 'node call.mjs mcp-bridge --listen stdio …'
  return [
    `// ${printable(name, 200)}, as a client of ${revision} called it. Run it: npm install ${from}; ${run}`,
    ...(sdk === 'v1' && isModern(revision)
      ? ['// SDK v1 has the legacy revisions only: the answer has their form.']
      : []),
  ]
}

function imports(asked: readonly string[], { sdk, transport }: CodeOptions): string[] {
  const channel = transport === 'http' ? 'StreamableHTTPClientTransport' : 'StdioClientTransport'
  if (sdk === 'v2')
    return transport === 'http'
      ? [`import { Client, ${channel} } from '@modelcontextprotocol/client'`]
      : [
          `import { Client } from '@modelcontextprotocol/client'`,
          `import { ${channel} } from '@modelcontextprotocol/client/stdio'`,
        ]
  const schemas = asked.map((method) => QUESTIONS[method]?.schema)
  return [
    `import { Client } from '@modelcontextprotocol/sdk/client/index.js'`,
    `import { ${channel} } from '@modelcontextprotocol/sdk/client/${transport === 'http' ? 'streamableHttp' : 'stdio'}.js'`,
    ...(schemas.length > 0 ? [`import { ${schemas.join(', ')} } from '@modelcontextprotocol/sdk/types.js'`] : []),
  ]
}

/** The options of the client. */
function settingsOf({ capabilities = {}, answers = [], revision }: RecordingCall, { sdk }: CodeOptions): JsonRecord {
  const needed = answers.flatMap(({ method }): [string, JsonRecord][] => {
    const question = QUESTIONS[method]
    return question && !(question.capability in capabilities) ? [[question.capability, question.declared]] : []
  })
  return {
    capabilities: { ...capabilities, ...Object.fromEntries(needed) },
    ...(sdk === 'v2' && {
      versionNegotiation: { mode: isModern(revision) ? { pin: revision } : 'legacy' },
    }),
  }
}

function transportOf({ transport, needsToken }: CodeOptions): string {
  if (transport === 'stdio')
    return `new StdioClientTransport({ command: process.argv[2] ?? '', args: process.argv.slice(3) })`
  const url = `new URL(process.env.MCP_BRIDGE_URL ?? '')`
  const headers = `{ requestInit: { headers: { authorization: \`Bearer \${process.env.TOKEN}\` } } }`
  return `new StreamableHTTPClientTransport(${url}${needsToken ? `, ${headers}` : ''})`
}

/** The answers by the methods of their questions, as far as the SDKs know these. */
function answersOf({ answers = [] }: RecordingCall): Record<string, JsonRecord[]> {
  const byMethod: Record<string, JsonRecord[]> = {}
  for (const { method, result } of answers) {
    if (!Object.hasOwn(QUESTIONS, method)) continue
    byMethod[method] ??= []
    if (byMethod[method].length < MAX_CODE_ANSWERS) byMethod[method].push(result)
  }
  return byMethod
}

/** Answers the questions of one method in their order; further ones as the last. */
function handlerOf(method: string, results: readonly JsonRecord[], { sdk }: CodeOptions): string[] {
  const { capability = '', schema = '' } = QUESTIONS[method] ?? {}
  const question = sdk === 'v1' ? schema : `'${method}'`
  const [first = {}, ...others] = results
  if (others.length === 0) return [`client.setRequestHandler(${question}, async () => (${code(first)}))`]
  const asked = `asked_${capability}`
  const choices = results.slice(0, -1).map((result, i) => `  if (${asked} === ${i + 1}) return ${code(result, '  ')}`)
  return [
    `let ${asked} = 0`,
    `client.setRequestHandler(${question}, async () => {`,
    `  ${asked}++`,
    ...choices,
    `  return ${code(results.at(-1), '  ')}`,
    '})',
  ]
}

/** A value as an expression. In an object literal, `"__proto__":` would be the prototype. */
function code(value: unknown, indent = ''): string {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => printableJson(line.replace(/^(\s*)"__proto__":/, '$1["__proto__"]:')))
    .join(`\n${indent}`)
}
