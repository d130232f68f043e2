/** What the package exports as `mcp-bridge`, as types: the build puts `createBridge` of the bundle there. */
export { createBridge } from './create.js'
export type {
  AddressEntry,
  Bridge,
  BridgeOptions,
  CommonOptions,
  ConnectOptions,
  FileOptions,
  GroupEntry,
  InProcessEntry,
  Logger,
  ProgramEntry,
  SdkTransport,
  Serve,
  ServerEntry,
  ServerOptions,
} from './options.js'
