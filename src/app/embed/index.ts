/** What the package exports as `mcp-bridge`, as types: the build puts `createBridge` of the bundle there. */
export { createBridge } from './create.js'
export type * from './options.js'
