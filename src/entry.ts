/**
 * The exports of the bundle: the program, and the embedding API. Each loads its code when it is used, because neither needs all
 * code of the other.
 */
import type { FastifyPluginAsync } from 'fastify'
import type { PluginOptions } from './app/embed/fastify.js'
import type { Bridge, BridgeOptions } from './app/embed/options.js'

/** Runs the program. */
export async function run(): Promise<void> {
  await import('./main.js')
}

export async function createBridge(options: BridgeOptions): Promise<Bridge> {
  const embed = await import('./app/embed/create.js')
  return embed.createBridge(options)
}

export const mcpBridge: FastifyPluginAsync<PluginOptions> = async (app, options) => {
  const embed = await import('./app/embed/fastify.js')
  return embed.mcpBridge(app, options)
}
