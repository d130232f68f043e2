/** Runs `mcp-bridge demo`: serves two built-in servers as a group, calls them as a modern client, and opens the inspector. */

import { basename, relative } from 'node:path'
import { literal, powershellOf } from '../base/texts/powershell.js'
import { quoted, usualShell } from '../base/texts/shell.js'
import { isStdio } from '../config/kinds.js'
import { browserOf, type Settings } from '../config/settings.js'
import { CALL_TOOL } from '../mcp/protocol/methods.js'
import { discoverCommand } from './announce.js'
import { callDemo, paramsOf, requestOf, SAMPLE } from './demo/client.js'
import { isForBrowsers } from './inspector-address.js'
import type { Program } from './program.js'
import { serve } from './serve.js'

function welcome(program: Program, inspector: string | undefined): string {
  const ways = inspector === undefined ? '' : waysTo(program, inspector)
  return `A modern client calls a tool of a legacy or a modern server every second, at one address. ${ways}Ctrl-C ends the demo.\n`
}

/** Explains how to watch the calls, for the inspector's address with its token. */
function waysTo({ script, errors }: Program, inspector: string): string {
  // The token must not be in a log.
  if (!errors.readable)
    return `Its inspector is at ${inspector.replace(/#.*/, '')}, with a token that only --log-format pretty shows.\n`
  // A clone has no command of this name.
  const isCloned = script !== undefined && basename(script) === 'main.js'
  const command = isCloned ? `node ${quoted(relative('', script))}` : 'mcp-bridge'
  const browser = isForBrowsers(inspector) ? `  in a browser:  ${inspector}\n` : ''
  return `See both sides of each call,\n${browser}  in a terminal: ${command} tail ${quoted(inspector)}\n`
}

/** Serves until the process ends. Resolves once it serves, or has ended. */
export async function demo(settings: Settings, program: Program): Promise<void> {
  const { output, env, platform } = program
  const stopping = new AbortController()
  const own = ofThisProgram(settings, program)
  output.err('Starting a legacy and a modern server, the bridge and its inspector …\n')
  await serve(
    { kind: 'run', settings: own, input: {}, files: [], notes: [], warnings: [], format: undefined },
    program,
    {
      tries: (url) => [callCommand(url, platform), discoverCommand(url, { platform })],
      onListening(url, inspector) {
        output.err(welcome(program, inspector))
        callDemo(url, stopping.signal).catch(() => {})
        if (inspector === undefined || !isForBrowsers(inspector) || !output.terminal) return
        // The address is printed, too.
        import('../services/oauth/person/browser.js')
          .then(({ browser }) => browser({ command: browserOf(settings), env, platform })(inspector))
          .catch(() => {})
      },
      // The client stops first, so that the bridge has no calls to wait for.
      onStop: () => stopping.abort(),
    },
  )
}

/** The settings with the built-in servers. */
function ofThisProgram(settings: Settings, { node, script }: Program): Settings {
  const { mcpServers } = settings
  const first = script === undefined ? [] : [script]
  const servers = Object.entries(mcpServers).map(([name, server]) => [
    name,
    { ...server, command: node, args: [...first, ...(isStdio(server) ? server.args : [])] },
  ])
  return { ...settings, mcpServers: Object.fromEntries(servers) as Settings['mcpServers'] }
}

/** A command that calls a tool, for the usual shell of the platform. */
export function callCommand(url: string, platform: string): string {
  const { headers, body } = requestOf(CALL_TOOL, paramsOf(SAMPLE), 1)
  if (usualShell(platform) === 'powershell') {
    const others = Object.entries(headers).filter(([name]) => name !== 'content-type')
    const literals = Object.fromEntries(others.map(([name, value]) => [name, literal(value)]))
    return powershellOf({ url: literal(url), headers: literals, body })
  }
  const lines = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`)
  return [`curl -s ${url}`, ...lines, `-d '${body}'`].join(' \\\n    ')
}
