/** The arguments and variables with which an entry starts the bridge for a server with an address. No side effects. */
import { isObject } from '../../config/value.js'
import { FLAGS, type Flag, type Flags } from '../flags.js'
import type { ProxyOption, Remote } from './proxies.js'
import { Unfit } from './unfit.js'

/** The variable with the address of the server: other users can read arguments, not variables. */
export const ADDRESS = 'MCP_BRIDGE_URL'
/** Begins the name of a variable with a header. */
const HEADER = 'MCP_BRIDGE_HEADER_'
const SECRET = 'MCP_BRIDGE_CLIENT_SECRET'
const REFERENCE = /^\$\{([A-Za-z_]\w*)\}$/

/** The words after `--listen stdio`, and variables. */
export interface StartWords {
  args: readonly string[]
  env: Readonly<Record<string, string>>
}

/** For an entry with an address. The client replaces references in its headers. */
export function startAt(url: string, isSse: boolean, headers: Readonly<Record<string, unknown>>): StartWords {
  const variables = new Map(Object.keys(headers).map((name, at) => [name, variableFor(name, at)]))
  return {
    args: ['--upstream', `env:${ADDRESS}`, ...[...variables].map(([name, variable]) => headerFrom(name, variable))],
    env: {
      [ADDRESS]: `${isSse ? 'sse+' : ''}${url}`,
      ...Object.fromEntries([...variables].map(([name, variable]) => [variable, String(headers[name])])),
    },
  }
}

/** Instead of a proxy, which replaces references in its headers itself, as the bridge does. Throws an Unfit. */
export function startInPlaceOf({ proxy, url, isSse, headers, options, logLevel }: Remote): StartWords {
  const isWhole = (value: unknown) => REFERENCE.test(String(value))
  const all = Object.entries(headers)
  const { args, env } = startAt(url, isSse, Object.fromEntries(all.filter(([, value]) => !value.includes('${'))))
  const referring = all.filter(([, value]) => value.includes('${'))
  const secret = options.find(({ path }) => path === 'oauth.clientSecret')?.value
  return {
    args: [
      ...args,
      ...referring.map(([name, value]) =>
        isWhole(value) ? headerFrom(name, value.replace(REFERENCE, '$1')) : `--header=${name}: ${value}`,
      ),
      ...options.flatMap((one) => flagsFor(one, proxy)),
      ...(logLevel === undefined ? [] : [`--log-level=${logLevel}`]),
    ],
    env: { ...env, ...(secret !== undefined && !isWhole(secret) && { [SECRET]: String(secret) }) },
  }
}

/** The headers from variables, and the variables of the bridge itself. */
export function headersFrom(flags: Flags, env: Readonly<Record<string, unknown>>) {
  const named = (flags['header-env'] ?? []).map((line) => {
    const at = line.indexOf('=')
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const
  })
  const own = named.filter(([, variable]) => variable.startsWith(HEADER) && variable in env)
  const headers = Object.fromEntries(own.map(([name, variable]) => [name, env[variable]]))
  return { headers, variables: [ADDRESS, SECRET, ...own.map(([, variable]) => variable)] }
}

function headerFrom(name: string, variable: string): string {
  return `--header-env=${name}=${variable}`
}

function flagsFor({ flag, path, value }: ProxyOption, proxy: string): string[] {
  const [of, key] = /^(timeouts)\.(.*)$/.exec(path)?.slice(1) ?? [path]
  const found = Object.entries(FLAGS).find(
    ([, row]: [string, Flag]) =>
      row.option === `mcpServers.<name>.${of}` && (row.value !== undefined || (row.to ?? true) === value),
  )
  if (!found)
    throw new Unfit(
      `mcp-bridge has no flag for ${flag} of ${proxy}: with --together it becomes "${path}" in a configuration`,
    )
  const [name, row]: [string, Flag] = found
  if (path === 'oauth.clientSecret') return [`--${name}=env:${REFERENCE.exec(String(value))?.[1] ?? SECRET}`]
  if (key !== undefined) return [`--${name}=${key}=${value}`]
  if (row.value === undefined) return [`--${name}`]
  if (Array.isArray(value)) return value.map((one) => `--${name}=${one}`)
  if (isObject(value)) return Object.entries(value).map(([key, one]) => `--${name}=${key}=${one}`)
  return [`--${name}=${value}`]
}

/** The name of the variable for a header. Two headers may differ only in punctuation. */
function variableFor(header: string, at: number): string {
  return `${HEADER}${at === 0 ? '' : `${at + 1}_`}${header.toUpperCase().replace(/\W/g, '_')}`
}
