/**
 * A process with an account of its own, as a host starts them: `<options as JSON>`. Does what it is told on standard input,
 * line by line, and says on standard output what came of it.
 */
import { createHash } from 'node:crypto'
import { argv, env, platform, stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline'
import { Fault } from '../../src/base/fault/fault.js'
import { TokenAccount } from '../../src/services/oauth/client/account.js'
import { Obtainer } from '../../src/services/oauth/client/obtain.js'
import type { ClientSettings } from '../../src/services/oauth/client/settings.js'
import { browser } from '../../src/services/oauth/person/browser.js'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { sharedRecords } from './shared-records.js'

export interface ProcessOptions {
  url: string
  folder: string
  challenge: string
  browser: readonly string[]
  settings?: Partial<ClientSettings>
  /** Milliseconds that its clock is ahead. */
  ahead?: number
  /** The address of a Redis that has the records, in place of the folder. */
  redis?: string
}

const options = JSON.parse(argv[2] ?? '{}') as ProcessOptions
const { url, folder, challenge, ahead = 0, redis } = options
const now = () => Date.now() + ahead
const store = redis === undefined ? new FileStore({ folder }) : (await sharedRecords(redis)).store
const say = (...words: unknown[]) => stdout.write(`${JSON.stringify(words)}\n`)
const settings: ClientSettings = { grant: 'code', wait: 60_000, ...options.settings }
const log = (_fields: object, message: string) => say('log', message)
const obtainer = new Obtainer({
  server: 'stock',
  url,
  settings,
  now,
  log: { info: log, warn: log },
  person: {
    open: browser({ command: options.browser, env, platform }),
    show: () => {
      say('shown')
      return true
    },
  },
})
const account = new TokenAccount({
  server: 'stock',
  settings,
  store,
  now,
  holder: { endpoint: url, account: 'local' },
  obtainer: () => Promise.resolve(obtainer),
})
const never = new AbortController().signal

/** What stands for a token where others can read along. */
const shortly = (header: string | undefined) => header && createHash('sha256').update(header).digest('hex').slice(0, 16)

const commands: Record<string, () => Promise<unknown>> = {
  authorization: async () => shortly(await account.authorization(never)),
  unauthorized: async () => {
    const sent = await account.authorization(never)
    return shortly(await account.refused({ status: 401, challenges: [challenge], sent }, never, true))
  },
  logout: () => account.logout(),
}

say('ready')
createInterface(stdin).on('line', (line) => {
  const command = commands[line]
  if (!command) return
  command().then(
    (value) => say(line, value),
    (error: unknown) => say(line, { reason: error instanceof Fault ? error.row.reason : String(error) }),
  )
})
