/** Sessions of this tab with servers in the view Try. They stay open for later visits: for most programs, a new session is a new process. */
import type { TrySession } from '../../try/types.js'
import { fromBridge } from '../feed.js'

/** Where the tab keeps them. */
const KEPT = 'mcp-bridge-try'
/** Most open sessions of a tab. The one that was used longest ago is ended. */
const MAX_SESSIONS = 4

interface TabSession {
  target: string
  /** The revision that was asked for. */
  as: string
  session: TrySession
}

/** The open session with a server, of a client of this revision. It may have ended. */
export function keptSession(target: string, as: string): TrySession | undefined {
  return read().find((one) => one.target === target && one.as === as)?.session
}

/** Keeps a session, as the one that was used last. */
export function keepSession(target: string, as: string, session: TrySession): void {
  const others = read().filter((one) => one.target !== target || one.as !== as)
  const all = [...others, { target, as, session }]
  write(all.slice(-MAX_SESSIONS))
  for (const one of all.slice(0, -MAX_SESSIONS)) end(one)
}

function end({ target, session: { id, revision } }: TabSession): void {
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': revision }
  fromBridge(`try?server=${encodeURIComponent(target)}`, { method: 'DELETE', headers }).catch(() => {})
}

function read(): TabSession[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? '[]') as TabSession[]
  } catch {
    return []
  }
}

function write(sessions: readonly TabSession[]): void {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(sessions))
  } catch {
    // Without storage, sessions last until they are idle for long.
  }
}
