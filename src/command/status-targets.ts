/** Finds the bridges that `mcp-bridge status` asks: those of an address, of a configuration, or of this user on this machine. */

import { bridgesIn } from '../app/running-bridges.js'
import { type HttpListen, type Listen, parseListen, type Settings, secretOf } from '../config/settings.js'
import { openable } from './inspector-address.js'
import { type InspectorTarget, inspectorAt, placeAt } from './tail-connection.js'
import { UsageError } from './usage-error.js'

/** Where clients and operators reach a bridge, and the tokens of its clients. */
export type BridgePlaces = Pick<Settings, 'listen' | 'admin' | 'auth'>

export interface StatusAction {
  /** An address or a process id; undefined for all bridges of this user on this machine. */
  target: string | undefined
  /** Where the bridge of a configuration or of flags listens; undefined if neither is given. */
  places: BridgePlaces | undefined
  json: boolean
}

export interface StatusTarget {
  /** Its address, for people. */
  address: string
  /** Where to ask: the first path that exists is asked. */
  asked: readonly InspectorTarget[]
  /** Nobody named it, so it is left out if nothing answers there. */
  isGuess: boolean
}

/** The usual addresses: where a bridge listens by default, and the one for operators in all examples. */
const USUAL = ['http://127.0.0.1:8080', 'http://127.0.0.1:9090']

/** The bridges to ask, and what was refused in the folder of the sockets. Throws a UsageError. */
export async function statusTargets(
  { target, places }: StatusAction,
  sockets: string | undefined,
  uid: number,
): Promise<{ targets: StatusTarget[]; refused: readonly { path: string; why: string }[] }> {
  if (target !== undefined && !/^\d+$/.test(target)) return { targets: [targetAt(target, places?.auth)], refused: [] }
  const listen = places && parseListen(places.listen)
  if (target === undefined && places && (places.admin !== undefined || listen?.kind === 'http'))
    return { targets: [ofPlaces(places, listen)], refused: [] }
  const { bridges, refused } =
    sockets === undefined
      ? { bridges: [], refused: [] }
      : await bridgesIn(sockets, uid, (pid) => target === undefined || pid === target, 'status')
  if (target !== undefined && bridges.length === 0)
    throw new UsageError(`no bridge of this user has the process id ${target}`, 'status')
  const onSockets = bridges.map(({ pid, socketPath }) => ({
    address: `stdio, process ${pid}`,
    asked: [{ url: new URL('http://localhost/status'), token: undefined, socketPath }],
    isGuess: true,
  }))
  const usual = target === undefined && !places ? USUAL.map((url) => ({ ...targetAt(url), isGuess: true })) : []
  return { targets: [...onSockets, ...usual], refused }
}

/** Where the bridge of a configuration reports its state. */
function ofPlaces({ listen, admin, auth }: BridgePlaces, at: Listen | undefined): StatusTarget {
  if (admin !== undefined) return targetAt(openable(admin))
  const { socket } = at as HttpListen
  return targetAt(socket === undefined ? openable(listen) : `unix:${socket}`, auth)
}

/** The bridge at an address: of its endpoint, for operators, or of its inspector. */
function targetAt(address: string, auth?: BridgePlaces['auth']): StatusTarget {
  const place = placeAt(address, 'status')
  const { url, token: viewer, socketPath } = place
  const shown = socketPath === undefined ? url.origin : `unix:${socketPath}`
  if (viewer !== undefined) return { address: shown, asked: [inspectorAt(place, 'status')], isGuess: false }
  const [client] = Object.values(auth?.tokens ?? {})
  const token = client === undefined ? undefined : secretOf(client)
  const asked = [
    { url: new URL('/status', url), token, socketPath },
    { url: new URL('/readyz', url), token: undefined, socketPath },
  ]
  return { address: shown, asked, isGuess: false }
}
