/** Recognizes programs that download what they run. Most do so without any output, as `npx -y`. */
import type { ProgramStart } from './cannot-start.js'

const RUNNERS =
  /(?:^|[\s"'/\\])(?:npx|npm|pnpm|pnpx|yarn|bunx?|uvx?|pipx|docker|podman|nerdctl|deno|dnx)(?:\.(?:cmd|exe))?(?=$|[\s"'])/i
/** Programs that run another program, which their arguments name. */
const OUTER = /(?:^|[/\\])(?:sh|bash|dash|ash|zsh|fish|env|cmd|powershell|pwsh|wsl)(?:\.exe)?$/i

/** Whether a program may download what it runs, so that its first start takes long. */
export function downloads({ command, args }: Pick<ProgramStart, 'command' | 'args'>): boolean {
  return RUNNERS.test(OUTER.test(command) ? args.join(' ') : command)
}
