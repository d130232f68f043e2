/** Flags that several commands take, and the groups in which help lists them. */
import { FLAGS, type FlagName } from './flags.js'

export const SOURCES = ['upstream', 'config', 'server'] as const
export const TOGETHER = [...SOURCES, 'group'] as const
export const TLS = ['ca', 'client-cert', 'client-key'] as const
export const SERVER = [
  'era',
  'session',
  'process',
  'tasks',
  'header',
  'header-env',
  'header-file',
  ...TLS,
  'ipv4',
  'ping',
  'timeout',
  'deny-tool',
  'env',
  'pass-environment',
  'cwd',
] as const
export const SIGN_IN = [
  'client-id',
  'client-secret',
  'client-credentials',
  'device-code',
  'client-metadata-url',
  'client-name',
  'issuer',
  'token-endpoint',
  'scope',
  'use-id-token',
  'callback-port',
  'redirect-uri',
  'success-url',
  'resource',
  'oauth-param',
  'sign-in-wait',
  'account',
  'browser',
  'no-browser',
  'token-store',
  'no-oauth',
] as const
/** Flags that set options of the entry of a server. */
export const ENTRY = [
  ...SERVER,
  ...SIGN_IN.filter((flag) => FLAGS[flag].option.startsWith('mcpServers.')),
] as readonly FlagName[]
export const FINDING = ['discover', 'discover-allow', 'discover-loopback', 'registry', 'trust-store'] as const
const FRONT = [
  'listen',
  'tls-cert',
  'tls-key',
  'admin',
  'public-url',
  'allowed-host',
  'allowed-origin',
  'token',
  'token-file',
  'allow-unauthenticated',
  'publish',
  'redis',
  'workers',
] as const
export const LOG = ['log-level', 'log-format'] as const
const INSPECT = ['inspect', 'inspect-payloads'] as const
export const BRIDGE = [...FRONT, ...SERVER, ...SIGN_IN, ...FINDING, 'read-only-tool', ...INSPECT, ...LOG] as const

/** Groups of flags, in the order of a page. A flag without a group is specific to its command. */
export const GROUPS: readonly (readonly [title: string, flags: readonly FlagName[]])[] = [
  ['Servers', TOGETHER],
  ['Where clients connect', FRONT],
  ['How a server is used', SERVER],
  ['Sign-in to a server', SIGN_IN],
  ['Discovery and trust', [...FINDING, 'read-only-tool']],
  ['Inspector', [...INSPECT, 'record']],
  ['Log', LOG],
]

export const TRUST = ['trust-store', 'config'] as const
