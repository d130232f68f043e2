/** What `mcp-bridge demo` does: serves a legacy server of its own, calls it as a modern client, and opens the inspector. */
import { basename, relative } from 'node:path'
import { quoted } from '../bridge/remedy.js'
import { browserOf, type Settings } from '../config/settings.js'
import { callDemo, paramsOf, requestOf, SAMPLE } from '../demo/client.js'
import { browser } from '../oauth/person/browser.js'
import { discoverCommand } from './announce.js'
import type { Program } from './program.js'
import { serve } from './serve.js'

function welcome({ script }: Pick<Program, 'script'>, inspector: string | undefined): string {
  // In a clone, there is no command of this name.
  const command = basename(script) === 'main.js' ? `node ${quoted(relative('', script))}` : 'mcp-bridge'
  const ways =
    inspector === undefined
      ? ''
      : `  in a browser:  ${inspector}\n  in a terminal: ${command} tail ${quoted(inspector)}\n`
  return `A modern client calls a tool of a legacy server every second. ${ways === '' ? '' : `See both sides of each call,\n${ways}`}Ctrl-C ends the demo.
`
}

/** Serves until the process ends. Resolves when it serves, or has ended. */
export async function demo(settings: Settings, program: Program): Promise<void> {
  const { output, env, platform } = program
  const stopping = new AbortController()
  const own = ofThisProgram(settings, program)
  await serve({ kind: 'run', settings: own, files: [], notes: [], format: undefined }, program, {
    tries: (url) => [callCommand(url), discoverCommand(url)],
    onListening(url, inspector) {
      // A log for programs has no token.
      output.err(welcome(program, program.errors.readable ? inspector : undefined))
      callDemo(url, stopping.signal).catch(() => {})
      if (inspector === undefined || !output.terminal) return
      // The address is printed, too.
      browser({ command: browserOf(settings), env, platform })(inspector).catch(() => {})
    },
    // The client ends first, so that the bridge has no calls to wait for.
    onStop: () => stopping.abort(),
  })
}

/** The settings with the server of this very program. */
function ofThisProgram(settings: Settings, { node, script }: Program): Settings {
  const { mcpServers } = settings
  const servers = Object.entries(mcpServers).map(([name, server]) => [
    name,
    { ...server, command: node, args: [script, 'demo', 'server'] },
  ])
  return { ...settings, mcpServers: Object.fromEntries(servers) as Settings['mcpServers'] }
}

/** The command that calls a tool. */
function callCommand(url: string): string {
  const { headers, body } = requestOf('tools/call', paramsOf(SAMPLE), 1)
  const lines = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`)
  return [`curl -s ${url}`, ...lines, `-d '${body}'`].join(' \\\n    ')
}
