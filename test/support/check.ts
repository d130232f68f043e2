/** `mcp-bridge check` without a process for each file. */
import { checkedInWords } from '../../src/cli/check.js'
import { cliErrorOf, inWords } from '../../src/cli/errors.js'
import { parseCommand } from '../../src/cli/parse.js'

/** What it says of a file, and the exit code. */
export function check(file: string, { env = {}, args = [] }: { env?: Record<string, string>; args?: string[] } = {}) {
  try {
    const command = parseCommand(['check', '--config', file, ...args], env)
    return { code: 0, said: command.kind === 'check' ? checkedInWords(command) : '' }
  } catch (error) {
    const complaint = cliErrorOf(error, { probing: false })
    return { code: complaint.code, said: inWords(complaint) }
  }
}
