/** Paths of documents that clients and bridges look for at a host. */

/** The manifest of a host. Its signature is at the same path with `.jws`. */
export const MANIFEST_PATH = '/.well-known/mcp.json'
/** The AI Catalog. */
export const CATALOG_PATH = '/.well-known/ai-catalog.json'
/** The metadata of a protected resource (RFC 9728, section 3.1). */
export const PROTECTED_RESOURCE = '/.well-known/oauth-protected-resource'
/** The metadata of an authorization server (RFC 8414, section 3.1). */
export const ISSUER_METADATA = '/.well-known/oauth-authorization-server'
