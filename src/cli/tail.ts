/** What `mcp-bridge tail` does: follows the inspector of a running bridge, and prints a line for each call. */
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { get as getHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { get as getHttps } from 'node:https'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { homeFolder } from '../discovery/home.js'
import { readFilter } from '../inspect/filter.js'
import { socketFolder } from '../inspect/socket.js'
import { Views } from '../inspect/views.js'
import { proxyAgent } from '../net/agent.js'
import { connectTo, type HttpProxy, proxiesOf } from '../net/proxy.js'
import type { Seen } from '../ports/seen.js'
import { printable, printableJson } from '../printable.js'
import { SseDecoder } from '../rpc/sse.js'
import { causeOf } from '../upstream/transport/causes.js'
import { adviceFor, lineOf, otherLine, painter, Sides } from './tail-lines.js'
import { UsageError } from './usage-error.js'

export interface TailOptions {
  /** The address that the bridge printed, or the id of its process; undefined for the only bridge of this user. */
  target: string | undefined
  filter: string
  json: boolean
  both: boolean
  /** The folder with the sockets of running bridges; undefined where there is none. */
  sockets: string | undefined
}

/** Where the lines go. */
export interface TailOutput {
  stdout: Writable & { isTTY?: boolean }
  /** Messages to people. */
  err(text: string): void
  env: Readonly<Record<string, string | undefined>>
}

interface Target {
  url: URL
  token: string | undefined
  socketPath: string | undefined
}

/** The folder where bridges of this user have their sockets. */
export function socketsOf(env: TailOutput['env']): string | undefined {
  return socketFolder(env, homeFolder())
}

/** Follows a bridge until it ends or nobody reads. Resolves to whether it could be followed. Throws a UsageError. */
export async function tail(options: TailOptions, { stdout, err, env }: TailOutput): Promise<boolean> {
  const { matches, isEmpty, problem, hint } = readFilter(options.filter)
  if (problem !== undefined) throw new UsageError(`the filter is wrong: ${problem}`, 'tail')
  if (hint !== undefined) err(`mcp-bridge tail: ${printable(hint, 400)}\n`)
  const target = await targetOf(options)
  let response: IncomingMessage
  try {
    response = await connect(target, options.json, env)
  } catch (error) {
    err(`mcp-bridge tail: ${unreachable(target, error)}\n`)
    return false
  }
  const status = response.statusCode ?? 0
  if (status !== 200) {
    response.destroy()
    err(`mcp-bridge tail: ${refusalOf(status)}\n`)
    return false
  }
  const paint = painter(stdout.isTTY === true && env['NO_COLOR'] === undefined && env['TERM'] !== 'dumb')
  if (stdout.isTTY === true && !options.json) stdout.write(paint('dim', greeting(target)))
  const views = new Views()
  const sides = new Sides(paint)
  let lost = 0
  const told = (seen: Seen) => {
    views.add(seen)
    if (views.lost > lost) err(`mcp-bridge tail: ${views.lost - lost} events are missing here\n`)
    lost = views.lost
    const call = seen.call === undefined ? undefined : views.call(seen.call)
    if (options.json) {
      if (call ? matches(call) : isEmpty) stdout.write(`${printableJson(JSON.stringify(seen))}\n`)
    } else if (call && seen.kind === 'call' && seen.what === 'ended' && matches(call)) {
      stdout.write(lineOf(call, paint))
      if (options.both) stdout.write(`${adviceFor(call)}${sides.of(call)}`)
    } else if (isEmpty) stdout.write(otherLine(seen, paint))
  }
  const decoder = new SseDecoder()
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>)
      for (const { event, data } of decoder.push(chunk)) {
        if (event === 'message') told(JSON.parse(Buffer.concat(data).toString()) as Seen)
        else if (event === 'dropped') err('mcp-bridge tail: this terminal reads too slowly, and was disconnected\n')
      }
  } catch {
    // The bridge was killed.
  }
  err('mcp-bridge tail: the bridge has ended the connection\n')
  return true
}

function greeting({ url, socketPath }: Target): string {
  return `Following ${socketPath ?? url.origin}: a line for each call that has ended or ends. M is the modern era, L the legacy one. Ctrl-C ends it.\n`
}

/** Which bridge is followed. Throws a UsageError if that is not clear. */
async function targetOf({ target, sockets }: TailOptions): Promise<Target> {
  if (target !== undefined && /^https?:\/\//.test(target)) {
    if (!URL.canParse(target)) throw new UsageError(`${printable(target)} is not a valid address`, 'tail')
    const url = new URL(target)
    const token = url.hash.slice(1)
    return { url: new URL('/inspect/events', url), token: token === '' ? undefined : token, socketPath: undefined }
  }
  const found = sockets === undefined ? [] : await running(sockets)
  const wanted = target === undefined ? found : found.filter(({ pid }) => pid === target)
  const [one, ...more] = wanted
  if (!one)
    throw new UsageError(
      target === undefined
        ? 'no bridge on stdio with --inspect runs as this user: of one on HTTP, give the address that it printed after "Inspector:"'
        : `no bridge with --inspect has the process id ${printable(target)}`,
      'tail',
    )
  if (more.length > 0)
    throw new UsageError(
      `several bridges run: choose one of ${wanted.map(({ pid }) => pid).join(', ')}, as in mcp-bridge tail ${one.pid}`,
      'tail',
    )
  return { url: new URL('http://localhost/inspect/events'), token: undefined, socketPath: one.path }
}

/** Bridges whose sockets answer. Sockets of others are removed: their processes were killed. */
async function running(folder: string): Promise<{ pid: string; path: string }[]> {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  const sockets = names.flatMap((name) => {
    const [, pid] = /^(\d+)\.sock$/.exec(name) ?? []
    return pid === undefined ? [] : [{ pid, file: join(folder, name) }]
  })
  const paths = await Promise.all(sockets.map(({ file }) => livePath(file)))
  return sockets.flatMap(({ pid }, i) => {
    const path = paths[i]
    return path === undefined ? [] : [{ pid, path }]
  })
}

/** The socket, or the pipe that a file of the folder names. Undefined if nothing answers there; if its process is gone, the file is removed. */
async function livePath(file: string): Promise<string | undefined> {
  try {
    const socketPath = lstatSync(file).isFile() ? readFileSync(file, 'utf8') : file
    // The bridge is just writing it.
    if (socketPath === '') return undefined
    const url = new URL('http://localhost/inspect/payloads')
    const response = await connect({ url, token: undefined, socketPath }, false, {})
    response.destroy()
    return socketPath
  } catch (error) {
    // A socket without a process refuses; a pipe goes with its process.
    if (error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
      rmSync(file, { force: true })
    return undefined
  }
}

function connect(
  { url, token, socketPath }: Target,
  payloads: boolean,
  env: TailOutput['env'],
): Promise<IncomingMessage> {
  if (payloads) url.searchParams.set('payloads', '')
  const headers = token === undefined ? {} : { authorization: `Bearer ${decodeURIComponent(token)}` }
  const proxy = socketPath === undefined ? proxiesOf(env)(url) : undefined
  if (proxy && url.protocol === 'http:') return connectVia(proxy, url, headers)
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getHttps : getHttp
    const way = socketPath !== undefined ? { socketPath } : { agent: proxy ? proxyAgent(proxy, url.protocol) : false }
    get(url, { headers, ...way }, resolve).once('error', reject)
  })
}

/** Without TLS the proxy gets the request itself: most proxies open tunnels only to port 443. */
async function connectVia(proxy: HttpProxy, url: URL, headers: OutgoingHttpHeaders): Promise<IncomingMessage> {
  const socket = await connectTo(proxy)
  const { authorization } = proxy
  const all = { ...headers, host: url.host, ...(authorization && { 'proxy-authorization': authorization }) }
  const path = `${url.origin}${url.pathname}${url.search}`
  return new Promise((resolve, reject) => {
    getHttp({ path, headers: all, createConnection: () => socket }, resolve).once('error', reject)
  })
}

/** Why a bridge cannot be reached, and what to do. The part after # is secret. */
function unreachable({ url, socketPath }: Target, error: unknown): string {
  const { what, next } = causeOf(error) ?? { what: error instanceof Error ? error.message : String(error) }
  const place = socketPath ?? url.origin
  return [`cannot connect to ${place}: ${what}`, ...(next === undefined ? [] : [`  ${next}`])].join('\n')
}

function refusalOf(status: number): string {
  if (status === 401)
    return 'the bridge requires its token: give the whole address that it printed, with the part after #'
  if (status === 404) return 'there is no inspector at this address: start the bridge with --inspect'
  if (status === 407)
    return 'a proxy requires a user and a password: put them into HTTP_PROXY, or the host into NO_PROXY'
  return `the bridge answered ${status}`
}
