/** The inspector of a bridge: its recorded events, and how it is served. Loaded only if it is used. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { socketFront } from '../app/http-app.js'
import { INSPECT } from '../app/inspector-path.js'
import { listenForUser, userSocket } from '../app/user-socket.js'
import { withoutCredentials } from '../base/credentials/credentials.js'
import type { Log } from '../base/log/events.js'
import type { Settings } from '../config/settings.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import type { InspectorOptions } from './answers.js'
import type { RecordEvent } from './recorder/events.js'
import { EventRecorder } from './recorder/recorder.js'
import { Ring } from './ring.js'
import { inspector } from './routes.js'

/** 192 random bits. */
const TOKEN_BYTES = 24

/** The dependencies of an inspector. */
interface InspectorContext {
  version: string
  log: Log
  /** The id of this replica, if there are several. */
  replica?: string | undefined
  /** The folder of the socket beside a bridge on stdio; it is not served there if there is none. */
  folder: string | undefined
  /** Whether viewers may call servers. */
  mayTry?: boolean
  /** A name for the only server, for people who choose among bridges. */
  title?: string | undefined
  /** Gets all events, too. */
  also?: RecordEvent | undefined
}

/** The inspector. */
export class Inspector {
  readonly path = INSPECT
  readonly recorder: EventRecorder
  /** The token of this start; undefined if one is configured. */
  readonly token: string | undefined
  readonly #settings: NonNullable<Settings['inspect']>
  readonly #context: InspectorContext
  readonly #ring: Ring
  #closeSocket: (() => Promise<void>) | undefined

  constructor(settings: NonNullable<Settings['inspect']>, context: InspectorContext) {
    const { replica, also } = context
    this.#settings = settings
    this.#context = context
    this.#ring = new Ring({ payloads: settings.payloads, replica })
    const { record } = this.#ring
    const both: RecordEvent = (event, text) => {
      also?.(event, text)
      return record(event, text)
    }
    this.recorder = new EventRecorder(also ? both : record, settings.callsPerSecond)
    this.token = settings.token === undefined ? randomBytes(TOKEN_BYTES).toString('base64url') : undefined
  }

  /** Serves the inspector to everybody who has the token. The application has already checked host and origin. */
  async register(app: FastifyInstance, bridge: InspectedBridge): Promise<void> {
    await app.register(inspector, this.#options(bridge, this.#settings.token ?? this.token))
  }

  /** Serves the inspector on a socket in its folder, on Windows on a pipe, to the user of this process. Never rejects. */
  async serveSocket(bridge: InspectedBridge): Promise<void> {
    const { folder, log } = this.#context
    if (folder === undefined) return
    const file = userSocket(folder, 'sock')
    try {
      const app = socketFront()
      await app.register(inspector, this.#options(bridge, undefined))
      await app.ready()
      const close = await listenForUser(app.server, folder, 'sock')
      this.#closeSocket = async () => {
        close()
        await app.close()
      }
      log.info({ event: 'inspector_listening', path: file }, 'serving the inspector to mcp-bridge tail')
    } catch (error) {
      log.warn({ event: 'inspector_failed', path: file, err: error }, 'the inspector cannot be served')
    }
  }

  async close(): Promise<void> {
    await this.#closeSocket?.()
  }

  #options(bridge: InspectedBridge, token: string | undefined): InspectorOptions {
    const { version, log, mayTry = false, title } = this.#context
    return {
      ring: this.#ring,
      version,
      // A program may take a secret as its first argument.
      title: title === undefined ? undefined : withoutCredentials(title),
      token,
      hide: this.#settings.hide,
      bridge,
      mayTry,
      // Only its user can open a socket without a token.
      tryToken: token === undefined ? undefined : this.#settings.tryToken,
      log,
    }
  }
}
