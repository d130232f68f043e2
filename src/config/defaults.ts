/**
 * What the schema gives without options, and the options that it has. The build puts the values in the place of this file
 * (.ci/build.mjs), because making the schema takes a fifth of a start.
 */
import { type GroupEntry, groupEntry } from './schema/groups.js'
import { fileSchema, type Settings } from './schema/schema.js'
import { type HttpSettings, httpServer, type StdioSettings, stdioServer } from './schema/server.js'
import { type OAuthSettings, oauthOfServer } from './schema/sign-in.js'

/** Names of all options of the bridge, in the order of the schema. */
export const OPTIONS: readonly string[] = Object.keys(fileSchema.shape)

/** Names of the options of programs. */
export const PROGRAM_OPTIONS: readonly string[] = Object.keys(stdioServer.shape)

/** Names of the options of servers at addresses. */
export const ADDRESS_OPTIONS: readonly string[] = Object.keys(httpServer.shape)

/** Of the configuration. */
export const defaultSettings = (): Settings => fileSchema.parse({})

/** Of a server that is a program. */
export function defaultsOfProgram(): Omit<StdioSettings, 'command'> {
  const { command: _, ...defaults } = stdioServer.parse({ command: '-' })
  return defaults
}

/** Of a server at an address. */
export function defaultsOfAddress(): Omit<HttpSettings, 'url'> {
  const { url: _, ...defaults } = httpServer.parse({ url: 'https://example.com/' })
  return defaults
}

/** Of a group. */
export const defaultsOfGroup = (): GroupEntry => groupEntry.parse({})

/** Of the sign-in to a server. */
export const defaultsOfSignIn = (): OAuthSettings => oauthOfServer.parse({})
