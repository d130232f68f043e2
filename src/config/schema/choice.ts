/** Options of one server: which of its tools, prompts and resources clients see. */
import * as z from 'zod'
import { namePattern, scope, shortTime, size, text, webAddress } from './values.js'

const toolName = z.string().regex(/^[\w.-]{1,128}$/, 'has to be made of up to 128 letters, digits, ".", "_" and "-"')

const override = z.strictObject({
  name: toolName
    .optional()
    .describe('Name that clients see and use. The name that the server uses is then unknown to them.'),
  title: z.string().optional().describe('Title that clients see.'),
  description: z.string().optional().describe('Description that clients see.'),
  annotations: z
    .strictObject({
      title: z.string().optional(),
      readOnlyHint: z.boolean().optional(),
      destructiveHint: z.boolean().optional(),
      idempotentHint: z.boolean().optional(),
      openWorldHint: z.boolean().optional(),
    })
    .optional()
    .describe('Annotations that replace those of the server with the same name.'),
  set: z
    .record(z.string().min(1), z.json())
    .optional()
    .describe(
      'Arguments with fixed values, as in { "org": "acme" }. Clients do not see these arguments, and cannot send them.',
    ),
})

const rulesFor = (what: string, patterns: string) => ({
  allow: z
    .array(namePattern)
    .optional()
    .describe(`${what} that clients see and can use, by ${patterns}. Default: all.`),
  deny: z
    .array(namePattern)
    .default([])
    .describe(`${what} that clients neither see nor can use, even if "allow" has them.`),
})

const GLOBS = 'globs of their names at the server'
const URIS = 'patterns of their URIs, in which * stands for any characters'

const toolRules = z.strictObject({
  ...rulesFor('Tools', GLOBS),
  override: z
    .record(z.string().min(1), override)
    .default({})
    .describe('Replacements for what the server says about a tool, by the name of the tool at the server.'),
  approve: z
    .union([z.literal('destructive'), z.array(namePattern).min(1)])
    .optional()
    .describe(
      'Tools that a person has to approve before each call, by globs of <tool> or <server>__<tool>, as in ["delete_*"]; or "destructive" for all that the server does not declare read-only or not destructive. The client asks the person.',
    ),
  approveBy: z
    .enum(['client', 'page'])
    .optional()
    .describe(
      'Where the person decides: "client", asked by the client, or "page": at the page of the bridge where people sign in, which requires "publicUrl" and "auth". There the person proves to be the caller. Default: client.',
    ),
  approveFor: shortTime
    .optional()
    .describe(
      'Time for which the person may allow such a tool with any arguments: 10m. Default: each call is approved by itself.',
    ),
})

/** Whether tools have schemas that the APIs of all models take: an option of servers and groups. */
export const schemas = z
  .union([z.literal('portable'), z.strictObject({ portable: z.array(namePattern).min(1) })])
  .optional()
  .describe(
    'Whether clients see tools with schemas and names that the APIs of all models take: "portable", or { "portable": ["gemini*"] } for clients with such names only. Calls reach the server as it has defined its tools. Default: tools are shown as they are.',
  )

/** Below this, a result would be more about its parts than of them. */
const LEAST_RESULT = 1024
const cutAt = size(LEAST_RESULT)

/** Options of a server that select what clients see. */
export const choice = {
  schemas,
  results: z
    .strictObject({
      cut: z
        .union([cutAt, z.record(namePattern, cutAt)])
        .describe(
          'Most text in the result of a tool, as in "64 KiB", or by globs of tool names, as in { "search_*": "16 KiB", "*": "64 KiB" }, of which the first that fits counts. What is beyond it is kept for ten minutes for the caller, who reads it part by part. Default: results are not cut.',
        ),
    })
    .optional()
    .describe('What becomes of results of tools that are too long for a model.'),
  tools: z
    .union([z.array(namePattern).transform((allow) => toolRules.parse({ allow })), toolRules])
    .optional()
    .describe('Tools that clients see and can use: a list of globs, or an object. Default: all.'),
  prompts: z.strictObject(rulesFor('Prompts', GLOBS)).optional().describe('Prompts that clients see and can use.'),
  resources: z
    .strictObject(rulesFor('Resources and templates', URIS))
    .optional()
    .describe('Resources that clients see and can use.'),
  events: z
    .strictObject({
      ...rulesFor('Types of events', GLOBS),
      scopes: z
        .record(text, z.array(scope))
        .default({})
        .describe(
          'Scopes that a principal needs to see and use a type of events, by globs of names, as in { "mail.*": ["mail"] }. All keys that fit count. A type that no key fits requires all scopes of the server.',
        ),
      callbacks: z
        .array(
          webAddress('https://').refine(isCallback, 'has to be an https:// address without user, query and fragment'),
        )
        .default([])
        .describe(
          'Addresses that clients may have events sent to: https://hooks.example.com for all of it, or with a path for what is below that. Addresses that are not public are refused. Default: none.',
        ),
    })
    .optional()
    .describe('Types of events that clients see and can use, and where they may have them sent.'),
}

function isCallback(address: string): boolean {
  const { protocol, username, password, search, hash } = new URL(address)
  return protocol === 'https:' && [username, password, search, hash].every((part) => part === '')
}
