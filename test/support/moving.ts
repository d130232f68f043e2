/** The tables of docs/moving.md: each flag of another bridge, and what it is here. */
import { readFileSync } from 'node:fs'
import parse from 'string-argv'

const page = readFileSync(new URL('../../docs/moving.md', import.meta.url), 'utf8')

export interface MovingRow {
  program: string
  /** The flag of the other program; a word for what is none. */
  flag: string
  /** What is written here: arguments, members of a file, or neither. */
  args: readonly string[]
  inFile: Record<string, unknown> | undefined
  /** Why there is nothing to write; undefined where there is. */
  why: string | undefined
}

/** The flags of each program, as its own help and source have them. */
export const FLAGS_OF: Readonly<Record<string, readonly string[]>> = {
  'mcp-remote': words(
    `3334 --header --header-file --transport --protocol --allow-http --enable-proxy --keep-alive --ping-interval --ipv4
    --connect-timeout --headers-timeout --body-timeout --debug --silent --host --callback-path --auth-success-url
    --auth-timeout --resource --disable-resource-parameter --authorize-param --static-oauth-client-info
    --static-oauth-client-metadata --client-metadata-url --device-code --client-credentials --token-endpoint
    --use-id-token --disable-cookies --ignore-tool --help --version`,
  ),
  'mcp-proxy': words(
    `--apiKey --connectionTimeout --corsAddAllowedHeader --debug --endpoint --eventStore --eventStoreMaxEvents
    --gracefulShutdownTimeout --host --keepAliveTimeout --maxBodySize --modern --port --requestTimeout --server
    --sessionIdleTimeout --shell --sseEndpoint --sslCa --sslCert --sslKey --stateless --streamEndpoint --tunnel
    --tunnelSubdomain --upstreamProtocol --help --version`,
  ),
  supergateway: words(
    `--stdio --sse --streamableHttp --outputTransport --port --baseUrl --ssePath --messagePath --streamableHttpPath
    --logLevel --cors --healthEndpoint --header --oauth2Bearer --stateful --sessionTimeout --protocolVersion --help
    --version`,
  ),
  'mcporter serve': words('--servers --stdio --http --host --config --root --log-level --oauth-timeout'),
}

/** All rows of the page, in their order. */
export function movingRows(): MovingRow[] {
  return page
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const rows = [...section.matchAll(/^\| (.*?) \| (.*) \|$/gm)].map(([, left = '', right = '']) => [left, right])
      const [, ...others] = rows
      const program = rows[0]?.[0] ?? ''
      return others.map(([left = '', right = '']) => rowOf(program, left, right))
    })
}

function rowOf(program: string, left: string, right: string): MovingRow {
  const [flag = ''] = parse(codeIn(left))
  const isNothing = /^(?:nothing|none)\b/.test(right)
  const text = isNothing ? '' : codeIn(right)
  const inFile = /^in a file: /.test(right) ? (JSON.parse(`{${text}}`) as Record<string, unknown>) : undefined
  return { program, flag, args: inFile ? [] : parse(text), inFile, why: isNothing ? right : undefined }
}

function codeIn(cell: string): string {
  return /`([^`]+)`/.exec(cell)?.[1] ?? ''
}

function words(text: string): string[] {
  return text.split(/\s+/)
}
