/** What the package exports as `mcp-bridge/fastify`, as types: the build puts the plugin of the bundle there. */
import { mcpBridge } from './fastify.js'

export default mcpBridge
export type { PluginOptions } from './fastify.js'
export type {
  AddressEntry,
  CommonOptions,
  FileOptions,
  GroupEntry,
  InProcessEntry,
  ProgramEntry,
  SdkTransport,
  Serve,
  ServerEntry,
  ServerOptions,
} from './options.js'
