/** A transport as the SDKs of MCP have it, as far as the bridge uses it: messages as objects, within one process. */

/** A transport of the SDKs of MCP, such as their InMemoryTransport. */
export interface SdkTransport {
  /** Set by whoever reads from the transport, before `start`. */
  onmessage?(message: object, extra?: object): void
  /** Set by whoever wants to know that it is closed. */
  onclose?(): void
  /** Set by whoever wants to know of errors. */
  onerror?(error: Error): void
  /** Begins to read. */
  start(): Promise<void>
  /** Sends a JSON-RPC message. */
  send(message: object): Promise<void>
  /** Closes the connection. */
  close(): Promise<void>
}

/** Connects a new server to a transport, as in `(transport) => createServer().connect(transport)`. */
export type Serve = (transport: SdkTransport) => unknown
