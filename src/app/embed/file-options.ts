/** The options of a configuration file as types. The package has them written out, with what they say (.ci/file-options.ts). */
import type * as z from 'zod'
import type { groupEntry } from '../../config/schema/groups.js'
import type { fileSchema } from '../../config/schema/schema.js'
import type { httpServer, stdioServer } from '../../config/schema/server.js'

/** Without the members of other programs, which are ignored. */
type Known<T extends z.ZodObject> = z.input<z.ZodObject<T['shape']>>

/** A server that is a program. */
export type ProgramEntry = Known<typeof stdioServer>

/** A server at an address. */
export type AddressEntry = Known<typeof httpServer>

/** Options that concern a server whatever it is. */
export type ServerOptions = Omit<ProgramEntry | AddressEntry, 'type'>

/** A group of servers. */
export type GroupEntry = z.input<typeof groupEntry>

/** The options of a configuration file. */
export type FileOptions = Omit<z.input<typeof fileSchema>, 'mcpServers'> & {
  mcpServers?: Record<string, ProgramEntry | AddressEntry>
}
