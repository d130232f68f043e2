/** `mcp-bridge check` without a process for each file. */
import { checkedInWords } from '../../src/command/check.js'
import { ENDS } from '../../src/command/ends.js'
import { cliErrorOf, inWords } from '../../src/command/errors.js'
import { parseCommand } from '../../src/command/parse.js'

/** What it says of a file, and the exit code. */
export function check(file: string, { env = {}, args = [] }: { env?: Record<string, string>; args?: string[] } = {}) {
  try {
    const command = parseCommand(['check', '--config', file, ...args], env)
    return { code: 0, said: command.kind === 'check' ? checkedInWords(command) : '' }
  } catch (error) {
    const complaint = cliErrorOf(error, { probing: false })
    return { code: ENDS[complaint.event].code, said: inWords(complaint) }
  }
}
