/** Options of groups: several servers that are served together at one endpoint. */
import * as z from 'zod'
import { schemas } from './choice.js'
import { entryName, milliseconds, namePattern, servedPath, text } from './values.js'

/** A prefix of names and URIs: without "_", so that the first "__" ends it, and legal in the scheme of a URI. */
const namePrefix = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9-]{0,31}$/,
    'has to begin with a letter and to have letters, digits and "-" only, at most 32',
  )

const SEARCHED = { always: [], limit: 5 }

/** The tools that are listed anyway, and the number of results. */
const search = z.union([
  z.boolean().transform((on) => (on ? SEARCHED : undefined)),
  z.strictObject({
    always: z
      .array(namePattern)
      .default(SEARCHED.always)
      .describe('Tools that are listed in addition, by globs of their names in the group, such as "files__*".'),
    limit: z.int().min(1).max(50).default(SEARCHED.limit).describe('How many tools search_tools returns by default.'),
  }),
])

/** One entry of `groups`. */
export const groupEntry = z.strictObject({
  servers: z
    .array(entryName)
    .min(1, 'names no server')
    .optional()
    .describe('Names of the servers, in the order in which their tools are listed. Default: all servers.'),
  path: servedPath.optional().describe('Path at which the bridge serves the group. Default: /<group>/mcp.'),
  title: text.optional().describe('Title of the group for people. Default: its name.'),
  instructions: z
    .string()
    .optional()
    .describe('Instructions of the group for models. Default: those of its servers, each under a heading.'),
  prefix: z
    .enum(['auto', 'always', 'never'])
    .default('auto')
    .describe(
      'Whether names of tools and prompts become <prefix>__<name>: always, never, or only if the group has more than one server (auto). With "never", a name of several servers means that of the first one.',
    ),
  prefixes: z
    .record(entryName, namePrefix)
    .default({})
    .describe('Prefixes of servers, as in { "github": "gh" }. Default: the name of the server.'),
  resources: z
    .enum(['prefix', 'as-is'])
    .default('prefix')
    .describe(
      'Whether URIs of resources get the prefix of their server, as in files+file:///a.txt, or stay unchanged.',
    ),
  schemas,
  wait: milliseconds
    .optional()
    .describe(
      'Milliseconds that a list waits for a slow or starting server. After that, the list has what the server listed last, or leaves it out. Default: 500 if the bridge knows a list of the server for the caller, else timeouts.firstList.',
    ),
  start: z
    .enum(['eager', 'lazy'])
    .optional()
    .describe(
      '"start" of the programs of the group that have none of their own. A program of several groups is eager if one of them says so. Default: see there.',
    ),
  required: z
    .union([z.literal(true), z.array(entryName)])
    .default([])
    .describe('Servers that have to answer: without one of them, the lists of the group are an error. true for all.'),
  search: search
    .optional()
    .describe(
      'List two tools instead of all: search_tools finds tools by words, and call_tool calls them. true, or an object. Default: off.',
    ),
})

/** `groups` of the bridge. */
export const groups = z
  .union([z.literal(false), z.record(entryName, groupEntry)])
  .optional()
  .describe(
    'Groups of servers by name, each served at one endpoint. Default: one group of all servers, at the path of "listen", if there are several; false for none.',
  )

export type GroupEntry = z.infer<typeof groupEntry>
