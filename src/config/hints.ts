/** Suggests a value for an option that has one of the wrong type. */
import { aboutAt } from './reference.js'

/** Example values, by the end of the option's path. They never repeat the actual value, which may be secret. */
const EXAMPLES: readonly (readonly [path: RegExp, example: string])[] = [
  [/^mcpServers\.[^.]+\.url$/, '["http://10.0.0.5/mcp", "http://10.0.0.6/mcp"]'],
  [/^mcpServers\.[^.]+\.args$/, '["-y", "some-server"]'],
  [/^mcpServers\.[^.]+\.env$/, '{ "NAME": "value" }'],
  [/^mcpServers\.[^.]+\.headers$/, '{ "Name": "value" }'],
  [/^mcpServers\.[^.]+\.timeouts$/, '{ "call": 60000 }'],
  [/^mcpServers\.[^.]+\.oauth$/, '{ "clientId": "…" }'],
  [/^mcpServers\.[^.]+\.roots$/, '["file:///srv/data"]'],
  [/^mcpServers\.[^.]+\.scopes$/, '{ "delete_*": ["write"] }'],
  [/^mcpServers\.[^.]+\.scopes\.[^.]+$/, '["write"]'],
  [/^mcpServers\.[^.]+\.paths$/, '["/files/*"]'],
  [/^mcpServers\.[^.]+\.(?:tools|prompts)$/, '{ "allow": ["get_*"], "deny": ["get_secret"] }'],
  [/^mcpServers\.[^.]+\.(?:tools|prompts)\.(?:allow|deny)$/, '["get_*", "list_*"]'],
  [/^mcpServers\.[^.]+\.tools\.approve$/, '["delete_*"]'],
  [/^mcpServers\.[^.]+\.tools\.override$/, '{ "get_x": { "description": "…" } }'],
  [/^mcpServers\.[^.]+\.tools\.override\.[^.]+$/, '{ "description": "…" }'],
  [/^mcpServers\.[^.]+\.tools\.override\.[^.]+\.annotations$/, '{ "readOnlyHint": true }'],
  [/^mcpServers\.[^.]+\.tools\.override\.[^.]+\.set$/, '{ "org": "acme" }'],
  [/^mcpServers\.[^.]+\.resources$/, '{ "allow": ["file:///srv/*"] }'],
  [/^mcpServers\.[^.]+\.resources\.(?:allow|deny)$/, '["file:///srv/*"]'],
  [/^(?:mcpServers|groups)\.[^.]+\.schemas$/, '{ "portable": ["gemini*"] }'],
  [/^(?:mcpServers|groups)\.[^.]+\.schemas\.portable$/, '["gemini*"]'],
  [/^mcpServers\.[^.]+\.results$/, '{ "cut": "64 KiB" }'],
  [/^mcpServers\.[^.]+\.results\.cut$/, '"64 KiB"'],
  [/^mcpServers\.[^.]+\.events$/, '{ "allow": ["mail.*"] }'],
  [/^mcpServers\.[^.]+\.events\.(?:allow|deny)$/, '["mail.*"]'],
  [/^mcpServers\.[^.]+\.events\.scopes$/, '{ "mail.*": ["mail"] }'],
  [/^mcpServers\.[^.]+\.events\.callbacks$/, '["https://hooks.example.com"]'],
  [/^mcpServers\.[^.]+\.account$/, '{ "header": "x-api-key" }'],
  [/^mcpServers\.[^.]+\.forward$/, '{ "x-api-key": true }'],
  [/^mcpServers\.[^.]+\.oauth(?:\.idp)?\.key$/, '{ "file": "key.pem", "alg": "ES256" }'],
  [/^mcpServers\.[^.]+\.oauth\.scopes$/, '["read", "write"]'],
  [/^mcpServers\.[^.]+\.oauth\.params$/, '{ "prompt": "consent" }'],
  [/^mcpServers\.[^.]+\.oauth\.endpoints$/, '{ "token": "https://login.example.com/token" }'],
  [/^mcpServers\.[^.]+\.oauth\.exchange$/, '{ "audience": "https://mcp.example.com" }'],
  [/^mcpServers\.[^.]+\.oauth\.idp$/, '{ "issuer": "https://id.example.com", "clientId": "…" }'],
  [/^groups$/, '{ "team": { "servers": ["a", "b"] } }'],
  [/^groups\.[^.]+$/, '{ "servers": ["a", "b"] }'],
  [/^groups\.[^.]+\.(?:servers|required)$/, '["a", "b"]'],
  [/^groups\.[^.]+\.prefixes$/, '{ "github": "gh" }'],
  [/^groups\.[^.]+\.search$/, '{ "limit": 5 }'],
  [/^groups\.[^.]+\.search\.always$/, '["files__*"]'],
  [/^(?:listen|admin)$/, '"http://127.0.0.1:8080/mcp"'],
  [/^tls$/, '{ "cert": "bridge.pem", "key": "bridge-key.pem" }'],
  [/^auth$/, `{ "tokens": { "<principal>": "\${TOKEN}" } }`],
  [/^auth\.tokens$/, `{ "<principal>": "\${TOKEN}" }`],
  [/^auth\.tokens\.[^.]+$/, `{ "token": "\${TOKEN}", "scopes": ["read"] }`],
  [/^auth\.(?:browser\.|tokens\.[^.]+\.)?scopes$/, '["read"]'],
  [/^auth\.issuers$/, '[{ "issuer": "https://id.example.com" }]'],
  [/^auth\.issuers\.\d+$/, '{ "issuer": "https://id.example.com" }'],
  [/^auth\.forwarded$/, `{ "user": "X-User", "secretHeader": "X-Proxy-Secret", "secret": "\${PROXY_SECRET}" }`],
  [/^auth\.forwarded\.map$/, '{ "mcp-admins": ["write"] }'],
  [/^auth\.forwarded\.map\.[^.]+$/, '["write"]'],
  [/^auth\.browser$/, '{ "clientId": "…" }'],
  [/^oauth$/, '{ "browser": "none" }'],
  [/^oauth\.allow$/, '["10.0.0.0/8"]'],
  [/^audit$/, '{ "file": "audit.jsonl" }'],
  [/^audit\.arguments$/, '["path"]'],
  [/^redis\.(?:sentinels|cluster)$/, '["redis-1.example:6379", "redis-2.example:6379"]'],
  [/^inspect\.hide$/, '["password"]'],
  [/^compat$/, '{ "strictRevisions": true }'],
  [/^discoverAllow$/, '["10.0.0.0/8"]'],
  [/^readOnlyTools$/, '["get_*"]'],
  [/^limits\.tools$/, '[{ "tools": "github__create_*", "max": 10, "every": "1m" }]'],
  [/^limits\.tools\.\d+$/, '{ "tools": "github__create_*", "max": 10, "every": "1m" }'],
  [/^log$/, '{ "level": "debug" }'],
  [/^redis$/, `{ "url": "\${REDIS_URL}" }`],
  [/^replicas$/, '{ "address": "http://[::]:8090" }'],
  [/^inspect$/, '{ "payloads": "errors" }'],
  [/^publish$/, '{}'],
  [/^stateKeys$/, `["\${STATE_KEY}"]`],
  [/^discover$/, '["example.com"]'],
  [/^allowedOrigins$/, '["https://app.example.com"]'],
  [/^(?:allowedHosts)$/, '["mcp.example.com"]'],
  [/^trustedProxies$/, '["10.0.0.0/8"]'],
  [/^timeouts$/, '{ "call": 60000 }'],
  [/^limits$/, '{ "calls": 2000 }'],
]

/** An example for an option, as the end of a message: `as in …`, or with the given port, `write …`. */
export function example(path: readonly string[], found: unknown): string | undefined {
  const at = path.join('.')
  const value = EXAMPLES.find(([pattern]) => pattern.test(at))?.[1]
  if (value === undefined) return undefined
  if (typeof found === 'number' && value.includes(':8080')) return `write ${value.replace('8080', String(found))}`
  return `as in ${value}`
}

interface Unit {
  name: string
  /** Factors of the units that people write. */
  factors: Readonly<Record<string, number>>
}

const KIB = 1024
const UNITS: readonly Unit[] = [
  {
    name: 'milliseconds',
    factors: {
      ...of(1, 'ms', 'msec', 'millisecond', 'milliseconds'),
      ...of(1_000, 's', 'sec', 'secs', 'second', 'seconds'),
      ...of(60_000, 'm', 'min', 'mins', 'minute', 'minutes'),
      ...of(3_600_000, 'h', 'hr', 'hour', 'hours'),
      ...of(86_400_000, 'd', 'day', 'days'),
    },
  },
  {
    name: 'bytes',
    factors: {
      ...of(1, 'b', 'byte', 'bytes'),
      ...of(KIB, 'k', 'kb', 'kib'),
      ...of(KIB ** 2, 'm', 'mb', 'mib'),
      ...of(KIB ** 3, 'g', 'gb', 'gib'),
    },
  },
]

function of(factor: number, ...words: string[]): Record<string, number> {
  return Object.fromEntries(words.map((word) => [word, factor]))
}

/** The unit of a number, from the option's description; undefined without one. */
export function unitOf(path: readonly string[]): Unit | undefined {
  const about = aboutAt(path)?.toLowerCase() ?? ''
  return UNITS.find(({ name }) => about.includes(name))
}
