/** HTTP to the bridge, in the form of each era: a POST per message, and what goes with it. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { PATIENCE, until } from '../support/eventually.js'
import type { Ended, Inbox, Outgoing, Sending, Wire } from './wire.js'

const BOTH = 'application/json, text/event-stream'

interface Event {
  event: string
  data: string
  fields: string[]
}

interface Asking {
  method: 'GET' | 'POST' | 'DELETE'
  headers: Record<string, string>
  body?: string
  /** The status and the headers have come. */
  head?(status: number, headers: IncomingHttpHeaders): void
  event?(event: Event): void
  /** The whole body, where it is not events. */
  whole?(text: string): void
}

/** Sends one request on a connection of its own, and gives what comes as it comes. */
function ask(url: string, { method, headers, body, head, event, whole }: Asking): Sending {
  let hangUp = () => {}
  const ended = new Promise<Ended>((resolve) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const status = response.statusCode ?? 0
      head?.(status, response.headers)
      const isEvents = response.headers['content-type']?.startsWith('text/event-stream')
      const read = event && isEvents ? eventReader(event) : undefined
      let text = ''
      let bytes = 0
      response.setEncoding('utf8').on('data', (chunk: string) => {
        bytes += Buffer.byteLength(chunk)
        if (read) read(chunk)
        else text += chunk
      })
      response.on('end', () => {
        if (!read) whole?.(text)
      })
      response.on('close', () => resolve({ status, bytes }))
      response.on('error', () => {})
    })
    request.setTimeout(PATIENCE, () => request.destroy())
    // Nobody answers on a connection that has been closed.
    request.on('error', () => resolve({}))
    request.end(body)
    hangUp = () => request.destroy()
  })
  return { ended, hangUp: () => hangUp() }
}

function eventReader(take: (event: Event) => void): (chunk: string) => void {
  let rest = ''
  let last = ''
  return (chunk) => {
    const news = last + chunk
    last = chunk.slice(-1)
    // To look through all of a large event at each piece of it would take seconds.
    if (!news.includes('\n\n')) {
      rest += chunk
      return
    }
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
      const named = (name: string) =>
        lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      const fields = lines.map((line) => line.slice(0, line.indexOf(':')))
      if (lines.length > 0) take({ event: named('event').at(-1) ?? 'message', data: named('data').join('\n'), fields })
    }
  }
}

/** A modern client: every POST says all there is to say, and nothing is kept. */
export function modernHttpWire(url: string, always: Record<string, string> = {}): Wire {
  let inbox: Inbox
  const open = new Set<() => void>()
  return {
    async open(given) {
      inbox = given
    },
    send({ text, method, params = {}, id, headers }) {
      const name = method === 'resources/read' ? params['uri'] : (params['name'] ?? params['taskId'])
      const sending = ask(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: BOTH,
          'mcp-protocol-version': '2026-07-28',
          ...(method !== undefined && { 'mcp-method': method }),
          ...(typeof name === 'string' && { 'mcp-name': headerText(name) }),
          ...always,
          ...headers,
        },
        body: text,
        head(status, got) {
          if (got['mcp-session-id'] !== undefined) inbox.complain('an answer has a session id')
          if (id === undefined && status !== 202)
            inbox.complain(`${method} is answered with ${status} and not with 202`)
        },
        event({ event, data, fields }) {
          if (event !== 'message') inbox.complain(`there is an event ${event}`)
          if (fields.includes('id') || fields.includes('retry')) inbox.complain('an event has an id or a retry')
          inbox.take(data, id)
        },
        whole: (body) => body !== '' && inbox.take(body, id),
      })
      open.add(sending.hangUp)
      return sending
    },
    async close() {
      for (const hangUp of open) hangUp()
    },
  }
}

/** What a header says a value with, plain or not. */
export function headerText(value: string): string {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

/** A legacy client over Streamable HTTP: a session, its stream, and a POST per message. */
export function legacyHttpWire(url: string, always: Record<string, string> = {}): Wire {
  let inbox: Inbox
  let session: Record<string, string> = {}
  let version: Record<string, string> = {}
  let stream: Sending | undefined
  const open = new Set<() => void>()

  function post({ text, method, id }: Outgoing): Sending {
    return ask(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: BOTH, ...always, ...session, ...version },
      body: text,
      head(status, headers) {
        const given = headers['mcp-session-id']
        if (method === 'initialize' && typeof given === 'string') session = { 'mcp-session-id': given }
        else if (method === 'initialize') inbox.complain('no session is given')
        else if (given !== undefined && given !== session['mcp-session-id'])
          inbox.complain(`the answer to ${method} gives another session`)
        if (id === undefined && status !== 202) inbox.complain(`${method} is answered with ${status} and not with 202`)
        if (id !== undefined && status !== 200 && status !== 202) inbox.complain(`${method} is answered with ${status}`)
      },
      event: ({ data }) => data !== '' && inbox.take(data, id),
      whole: (body) => body !== '' && inbox.take(body, id),
    })
  }

  return {
    async open(given) {
      inbox = given
    },
    send(outgoing) {
      const sending = post(outgoing)
      open.add(sending.hangUp)
      return sending
    },
    agree(revision) {
      version = { 'mcp-protocol-version': revision }
    },
    async ready() {
      let answered: number | undefined
      stream = ask(url, {
        method: 'GET',
        headers: { accept: 'text/event-stream', ...always, ...session, ...version },
        head(status) {
          answered = status
        },
        event: ({ data }) => data !== '' && inbox.take(data, undefined),
      })
      await until(() => answered !== undefined, 'the stream is answered')
      if (answered !== 200) inbox.complain(`the stream is answered with ${answered}`)
    },
    async close() {
      stream?.hangUp()
      for (const hangUp of open) hangUp()
      const { status } = await ask(url, { method: 'DELETE', headers: { ...always, ...session, ...version } }).ended
      if (status !== 200) inbox.complain(`the end of the session is answered with ${status}`)
    },
  }
}

/** A legacy client over HTTP+SSE: a stream that all answers come on, and that says where to post. */
export function legacySseWire(url: string, always: Record<string, string> = {}): Wire {
  const streamUrl = new URL('sse', url).href
  let inbox: Inbox
  let endpoint: string | undefined
  let stream: Sending | undefined
  return {
    async open(given) {
      inbox = given
      stream = ask(streamUrl, {
        method: 'GET',
        headers: { accept: 'text/event-stream', ...always },
        event({ event, data, fields }) {
          if (fields.includes('id') || fields.includes('retry')) inbox.complain('an event has an id or a retry')
          if (event === 'message') return inbox.take(data, undefined)
          if (event !== 'endpoint' || endpoint) inbox.complain(`there is another event ${event}`)
          endpoint = new URL(data, streamUrl).href
          if (new URL(endpoint).origin !== new URL(streamUrl).origin) inbox.complain('the endpoint is elsewhere')
        },
      })
      await until(() => endpoint !== undefined, 'the stream says where to post')
    },
    send({ text, method }) {
      return ask(endpoint ?? '', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...always },
        body: text,
        head(status, headers) {
          if (status !== 202) inbox.complain(`${method} is answered with ${status} and not with 202`)
          if (headers['mcp-session-id'] !== undefined) inbox.complain('an answer has a session id')
        },
        whole: (body) => body !== '' && inbox.complain(`${method} is answered with a body: ${body}`),
      })
    },
    async close() {
      stream?.hangUp()
      await stream?.ended
    },
  }
}
