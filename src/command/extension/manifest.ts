/** The manifest of an extension for desktop programs (MCPB, github.com/modelcontextprotocol/mcpb). */

import { parseUrl } from '../../base/texts/parse-url.js'
import type { Identity } from '../../middle/describe/server.js'
import type { Question } from './questions.js'

/**
 * What is needed is in this version of the format. Later ones add types of servers, and programs that have not been updated refuse
 * them.
 */
const FORMAT = '0.3'
const NODE = '>=20.19.0'
const SEMVER = /^\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?$/
/** Most characters of a description. The text of a server has no bound. */
const TEXT = 1_000

export interface ExtensionParts {
  /** The name of the server or group in the configuration. */
  name: string
  identity: Identity
  /** The host of the server, if it has an address. */
  host: string | undefined
  /** Undefined if the server was not asked. */
  tools: readonly { name: string; description?: string | undefined }[] | undefined
  /** The path of its icon in the extension, or an address. */
  icon: string | undefined
  questions: readonly Question[]
}

/** The paths of the program and of its configuration. */
export const PROGRAM = 'server/main.mjs'
export const CONFIG = 'server/mcp.json'

export function manifestOf({ name, identity, host, tools, icon, questions }: ExtensionParts): Record<string, unknown> {
  const { title, version, description, websiteUrl } = identity
  const shown = title ?? identity.name ?? name
  const homepage = websiteUrl !== undefined && parseUrl(websiteUrl) ? websiteUrl : undefined
  return {
    manifest_version: FORMAT,
    name: name.toLowerCase(),
    display_name: shown,
    version: version !== undefined && SEMVER.test(version) ? version : '1.0.0',
    description: cut(description ?? 'An MCP server, through mcp-bridge'),
    author: { name: homepage === undefined ? (host ?? shown) : new URL(homepage).host },
    ...(homepage !== undefined && { homepage }),
    ...(icon !== undefined && { icon }),
    server: {
      type: 'node',
      entry_point: PROGRAM,
      mcp_config: {
        command: 'node',
        args: [`\${__dirname}/${PROGRAM}`, '--listen', 'stdio', '--config', `\${__dirname}/${CONFIG}`],
        env: Object.fromEntries(questions.map(({ variable }) => [variable, `\${user_config.${keyOf(variable)}}`])),
      },
    },
    ...(tools &&
      tools.length > 0 && {
        tools: tools.map((tool) => ({
          name: tool.name,
          ...(tool.description && { description: cut(tool.description) }),
        })),
      }),
    // The server may have others tomorrow.
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: NODE } },
    ...(questions.length > 0 && {
      user_config: Object.fromEntries(questions.map((question) => [keyOf(question.variable), itemOf(question)])),
    }),
  }
}

function itemOf({ type, title, description, sensitive, default: initial }: Question): Record<string, unknown> {
  return {
    type,
    title,
    description,
    ...(type === 'string' && { sensitive }),
    // A host looks for a value of the user, and not for the default, before it starts what requires one.
    required: initial === undefined,
    ...(initial !== undefined && { default: initial }),
  }
}

/** The key of the value of a variable. */
function keyOf(variable: string): string {
  return variable.toLowerCase()
}

function cut(text: string): string {
  return text.length > TEXT ? `${text.slice(0, TEXT - 1)}…` : text
}
