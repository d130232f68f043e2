/** The plugin for Fastify: endpoints of the bridge among the routes of an application. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import {
  ConfigError,
  FACADE,
  groupPaths,
  parseListen,
  servedPaths,
  ssePaths,
  TOKEN_ROUTES,
} from '../../config/settings.js'
import { isPreflight } from './caller.js'
import { ENDPOINT } from './create.js'
import { EmbeddedBridge } from './embedded.js'
import { logOf } from './log.js'
import type { CommonOptions } from './options.js'
import { checkFunctions } from './settings.js'

/** Options of the plugin, beside `prefix`, which is the path of the endpoint. */
export interface PluginOptions extends CommonOptions {
  /**
   * Who sends a request: a name, by which callers are kept apart. Without a name the request is refused. By default everybody is
   * one anonymous principal, or `auth` decides. It is called after the hooks of the application.
   */
  principal?: (request: FastifyRequest) => string | undefined | Promise<string | undefined>
}

/**
 * Serves the bridge at `prefix`, and each server and group at `<prefix>/<name>/mcp`. Hooks of the application apply to its
 * requests; it adds none to other routes. It logs to `app.log`, and ends with the application.
 */
export const mcpBridge: FastifyPluginAsync<PluginOptions> = async (app, options) => {
  const { principal, prefix: _prefix, ...common } = options as PluginOptions & { prefix?: string }
  const beside = (['passthrough', 'issuers'] as const).find((option) => common.auth?.[option])
  if (beside && app.prefix !== '')
    throw new ConfigError([
      {
        path: `auth.${beside}`,
        message: 'needs paths beside "prefix": register the plugin without it, or use createBridge',
      },
    ])
  checkFunctions({ principal })
  const hasPrincipals = principal !== undefined
  const place = { option: 'prefix', path: app.prefix || ENDPOINT, isFolder: app.prefix !== '', hasPrincipals }
  const embedded = await EmbeddedBridge.create(common, place, logOf(app.log))
  const routing = await embedded.attach()
  // Event streams would hold up the end of the server, so the bridge ends before it.
  app.addHook('preClose', () => embedded.close())

  // The bridge reads the body itself: from the connection, as it arrives.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  const endpoints = pathsOf(embedded, ignoresSlash(app.initialConfig))
  for (const path of [...endpoints, ...(beside ? besideOf(embedded) : [])])
    app.route({
      method: ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'],
      url: path.slice(app.prefix.length),
      prefixTrailingSlash: path === `${app.prefix}/` ? 'slash' : 'no-slash',
      handler: async (request, reply) => {
        const caller = isPreflight(request.method) ? undefined : ((await principal?.(request)) as unknown)
        if (caller !== undefined) embedded.callers.set(request.raw, caller)
        reply.hijack()
        for (const [name, value] of Object.entries(reply.getHeaders()))
          if (value !== undefined) reply.raw.setHeader(name, value)
        routing(request.raw, reply.raw)
      },
    })
  app.addHook('onReady', async () => embedded.warmUp())
}

/** Where clients get tokens for the endpoints. */
function besideOf({ settings: { auth } }: EmbeddedBridge): readonly string[] {
  return [...TOKEN_ROUTES, ...(auth?.issuers?.some(({ facade }) => facade) ? [`${FACADE}/*`] : [])]
}

/** Whether the application takes paths with and without a slash at the end for the same: then a route may be added once only. */
function ignoresSlash(config: {
  ignoreTrailingSlash?: boolean
  routerOptions?: { ignoreTrailingSlash?: boolean }
}): boolean {
  return config.ignoreTrailingSlash === true || config.routerOptions?.ignoreTrailingSlash === true
}

/** The paths of all endpoints, within those of the application, each also with a slash at its end. */
function pathsOf({ settings }: EmbeddedBridge, isOnce: boolean): Set<string> {
  const listen = parseListen(settings.listen)
  if (listen.kind !== 'http') return new Set()
  const endpoints = [...groupPaths(settings, listen).values(), ...servedPaths(settings, listen).values()].flat()
  const streams = endpoints.flatMap((path) => Object.values(ssePaths(path)))
  // Those of the endpoint at the prefix itself would be beside it.
  const all = [...endpoints, ...streams.filter((path) => path.startsWith(`${listen.path}/`))]
  return new Set(isOnce ? all : all.flatMap((path) => [path, `${path}/`]))
}
