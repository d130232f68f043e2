/** Configured certificates and keys, such as a server's certificate authority or client certificate. */

import type { Log } from '../base/log/events.js'
import type { TlsFor } from '../base/net/connect.js'
import { PemError, PemFiles, type PemPaths } from '../base/net/pem-files.js'
import { withoutBrackets } from '../base/texts/parse-url.js'
import { ConfigError, isStdio, type ServerSettings } from '../config/settings.js'

/** The files of a server; undefined if its entry names none. Throws a ConfigError. */
export function pemOfServer(
  name: string,
  own: ServerSettings,
  log: Pick<Log, 'warn'> | undefined,
): PemFiles | undefined {
  if (isStdio(own) || (own.ca === undefined && own.cert === undefined)) return undefined
  return filesAt(`mcpServers.${name}`, own, log)
}

/**
 * For sign-in to a server: its authority is trusted for the authorization server too, beside the public ones. Only the
 * server itself gets the client certificate.
 */
export function signInTls(url: string, pem: PemFiles | undefined): TlsFor | undefined {
  if (!pem) return undefined
  const { hostname, port } = new URL(url)
  return (host, at) => {
    const { ca, ...own } = pem.current
    return {
      ...(ca !== undefined && { ca }),
      ...(host === withoutBrackets(hostname) && at === (Number(port) || 443) && own),
    }
  }
}

/** PEM files. They are read again when they change. Throws a ConfigError. */
export function filesAt(path: string, paths: PemPaths, log: Pick<Log, 'warn'> | undefined): PemFiles {
  try {
    return new PemFiles(paths, ({ option, message }) =>
      log?.warn(
        { event: 'certificate_unusable', option: `${path}.${option}`, why: message },
        'changed certificate or key is unusable; keeping the previous one',
      ),
    )
  } catch (error) {
    throw error instanceof PemError
      ? new ConfigError([{ path: `${path}.${error.option}`, message: error.message }])
      : error
  }
}
