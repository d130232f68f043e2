/** Synonyms of options, from people and other programs: suggestions for unknown keys. */
import { nearest } from '../base/texts/nearest.js'

/** Synonyms of an option, without punctuation and in lower case. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  // Of a server.
  command: ['cmd', 'program', 'executable', 'exec', 'binary', 'bin', 'run', 'script', 'commandline'],
  args: ['arguments', 'argv', 'params', 'parameters', 'commandargs'],
  env: ['environment', 'envs', 'envvars', 'environmentvariables', 'variables', 'vars'],
  cwd: ['workingdirectory', 'workingdir', 'workdir', 'directory', 'dir', 'folder'],
  url: ['uri', 'endpoint', 'address', 'baseurl', 'baseuri', 'serverurl', 'mcpurl', 'link', 'href', 'host', 'server'],
  headers: ['header', 'httpheaders', 'requestheaders', 'customheaders', 'requestinit'],
  type: ['transport', 'transporttype', 'protocol', 'kind'],
  disabled: ['disable', 'off'],
  oauth: ['auth', 'authentication', 'signin', 'login'],
  ca: ['cacert', 'cafile', 'cabundle'],
  passEnvironment: ['inheritenv', 'passenv'],
  timeouts: ['timeout', 'timeoutms', 'requesttimeout', 'connecttimeout', 'sessiontimeout'],
  // Of the bridge.
  mcpServers: ['servers', 'mcp', 'mcpserver', 'server', 'upstreams', 'upstream', 'backends'],
  listen: ['port', 'host', 'hostname', 'bind', 'address', 'addr', 'http', 'interface'],
  tls: ['ssl', 'https', 'certificate'],
  auth: ['token', 'tokens', 'apikey', 'apikeys', 'authentication', 'authorization', 'bearer'],
  log: ['loglevel', 'logging', 'logger', 'logs', 'verbose', 'debug', 'logformat'],
  allowedOrigins: ['cors', 'origin', 'origins', 'alloworigin', 'alloworigins'],
  allowedHosts: ['hosts', 'allowhost', 'allowhosts'],
  publicUrl: ['externalurl', 'publicaddress', 'rooturl'],
  limits: ['limit', 'ratelimit', 'bounds'],
  metrics: ['prometheus', 'monitoring'],
  redis: ['redisurl', 'store'],
  // Below these.
  level: ['loglevel', 'lvl', 'severity'],
  tokens: ['token', 'users', 'keys', 'apikeys', 'clients', 'bearer'],
  token: ['secret', 'key', 'value', 'password'],
  scopes: ['scope', 'permissions'],
  call: ['request', 'tool', 'toolcall', 'timeout', 'calltimeout', 'requesttimeout'],
  initialize: ['init', 'startup', 'start', 'connect', 'handshake'],
  clientId: ['id', 'client'],
  clientSecret: ['secret'],
  cert: ['certificate', 'certfile', 'crt'],
  key: ['keyfile', 'privatekey'],
  // Levels of the log.
  trace: ['all', 'silly', 'finest'],
  debug: ['verbose', 'fine'],
  info: ['notice', 'information', 'default'],
  warn: ['warning', 'warnings'],
  error: ['critical', 'fatal', 'errors'],
  silent: ['none', 'off', 'quiet'],
}

/** The option that a key probably means: another spelling, a synonym, or a misspelling. */
export function meantBy(key: string, known: Iterable<string>): string | undefined {
  const options = [...known]
  const word = plain(key)
  return (
    options.find((option) => plain(option) === word) ??
    options.find((option) => WORDS[option]?.includes(word)) ??
    nearest(key, options)
  )
}

/** The end of a message about an unknown key: a suggestion, or nothing. */
export function didYouMean(key: string, known: Iterable<string>): string {
  const meant = meantBy(key, known)
  return meant === undefined ? '' : `: did you mean "${meant}"?`
}

function plain(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9]/g, '')
}
