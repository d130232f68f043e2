/** A collector of log records inside the test, which answers as the test says: what has been sent to it over OTLP in JSON can be looked at. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { env } from 'node:process'
import type { Test } from 'tap'
import { listenUntilEnd } from './listen-until-end.js'

type Json = Record<string, unknown>
/** Answers a request with this number of records. */
export type Answer = (response: ServerResponse, count: number) => void

export const json = (response: ServerResponse, status: number, body: object = {}) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
/** Accepts everything. */
export const accept: Answer = (response) => json(response, 200)

interface Value {
  stringValue?: string
  intValue?: number
  doubleValue?: number
  kvlistValue?: { values: { key: string; value: Value }[] }
}

interface Received {
  path: string
  headers: IncomingHttpHeaders
  text: string
  records: { body: Json; record: Json; resource: Json }[]
}

function plain({ stringValue, intValue, doubleValue, kvlistValue }: Value): unknown {
  return kvlistValue ? object(kvlistValue.values) : (stringValue ?? intValue ?? doubleValue)
}

function object(members: { key: string; value: Value }[]): Json {
  return Object.fromEntries(members.map(({ key, value }) => [key, plain(value)]))
}

function recordsIn(text: string): Received['records'] {
  const { resourceLogs } = JSON.parse(text) as {
    resourceLogs: {
      resource: { attributes: { key: string; value: Value }[] }
      scopeLogs: { logRecords: ({ body: Value } & Json)[] }[]
    }[]
  }
  return resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map((record) => ({
        body: plain(record.body) as Json,
        record,
        resource: object(resource.attributes),
      })),
    ),
  )
}

/** A collector of log records, which the variables of the process name. It answers with `answer`, which tests change. */
export async function collect(t: Test, variables: Record<string, string> = {}) {
  const collector = { answer: accept, requests: [] as Received[], bodies: () => bodies() }
  const bodies = () => collector.requests.flatMap(({ records }) => records.map(({ body }) => body))
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { headers, url: path = '' } = request
      const records = headers['content-type']?.includes('json') ? recordsIn(text) : []
      collector.requests.push({ path, headers, text, records })
      collector.answer(response, records.length)
    })
  })
  await listenUntilEnd(t, server)
  const set: Record<string, string> = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    ...variables,
  }
  Object.assign(env, set)
  t.teardown(() => {
    for (const name of Object.keys(set)) delete env[name]
  })
  return collector
}
