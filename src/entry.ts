/**
 * What the file of the bundle gives to the files around it: the program, and what a program that imports the package gets. Each is
 * loaded when it is used, because neither needs all of the other.
 */
import type { FastifyPluginAsync } from 'fastify'
import type { PluginOptions } from './embed/fastify.js'
import type { Bridge, BridgeOptions } from './embed/options.js'

/** Runs the program. */
export async function run(): Promise<void> {
  await import('./main.js')
}

export async function createBridge(options: BridgeOptions): Promise<Bridge> {
  const embed = await import('./embed/create.js')
  return embed.createBridge(options)
}

export const mcpBridge: FastifyPluginAsync<PluginOptions> = async (app, options) => {
  const embed = await import('./embed/fastify.js')
  return embed.mcpBridge(app, options)
}
