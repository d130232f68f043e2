/** What the clients of the matrix send by, whatever they speak: a pipe, or HTTP in one of its forms. */

export type Json = Record<string, unknown>

/** One message on its way to the bridge. */
export interface Outgoing {
  text: string
  method?: string | undefined
  params?: Json | undefined
  /** The key of the request's id; none for notifications and answers. */
  id?: string | undefined
  /** Headers beside those that every message of the kind has. */
  headers?: Record<string, string> | undefined
}

/** How the sending of a message ended. There is no status where there is no HTTP. */
export interface Ended {
  status?: number
  /** Bytes of the body. */
  bytes?: number
}

export interface Sending {
  ended: Promise<Ended>
  /** Closes the connection, where the message has one of its own. */
  hangUp(): void
}

/** What a wire tells its client. */
export interface Inbox {
  /** A message has come; on the stream of this request, where requests have streams. */
  take(text: string, on: string | undefined): void
  /** Something was not as it has to be. */
  complain(what: string): void
}

export interface Wire {
  /** Opens what has to be open before anything can be said. */
  open(inbox: Inbox): Promise<void>
  send(outgoing: Outgoing): Sending
  /** The handshake has come to this revision. */
  agree?(revision: string): void
  /** Opens what can be opened when the client and the bridge have shaken hands. */
  ready?(): Promise<void>
  /** Ends the session, if there is one, and lets go of all connections. */
  close(): Promise<void>
}

/** A text that goes out to the letter, in the place where it stands in a message. */
export class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): string {
    return `%raw ${this.text} raw%`
  }
}

/** JSON with all raw texts in it as they are. */
export function write(value: unknown): string {
  return JSON.stringify(value).replace(/"%raw ((?:[^"\\]|\\.)*) raw%"/g, (_, text: string) =>
    String(JSON.parse(`"${text}"`)),
  )
}

/** The key of an id: `1` and `"1"` are two. */
export function keyOf(id: unknown): string {
  return id instanceof Raw ? JSON.stringify(JSON.parse(id.text)) : JSON.stringify(id)
}
