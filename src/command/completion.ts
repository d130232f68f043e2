/** Prints a script with which a shell completes commands and flags, made of their tables. */
import { optionAt, options } from '../config/reference.js'
import { COMMAND_NAMES, type CommandName, EVERYWHERE, rowOf } from './commands.js'
import { FLAGS, type Flag, type FlagName } from './flags.js'
import { aboutFlag } from './help.js'
import { type CompletedShell, SHELLS } from './shells.js'

/** A word that can stand next, and what it is. */
interface Choice {
  word: string
  about: string
}

/** The choices by the words of commands before them: the next words of commands, and the flags of a command. */
interface Choices {
  words: ReadonlyMap<string, readonly Choice[]>
  flags: ReadonlyMap<string, readonly Choice[]>
  /** The values of flags, as far as they can be listed. */
  values: ReadonlyMap<string, readonly string[]>
  /** Flags with any other value. */
  valued: readonly string[]
}

/** The script for a shell. */
export function completionFor(shell: CompletedShell): string {
  return SCRIPTS[shell](choices())
}

/** Help has the rest of a description. */
const firstSentence = (text: string) => text.replace(/[.;:] .*$|\.$/s, '')

function choices(): Choices {
  const all = options()
  const words = new Map<string, Choice[]>()
  for (const name of COMMAND_NAMES) {
    const parts = name.split(' ')
    for (const [at, word] of parts.entries()) {
      const before = parts.slice(0, at).join(' ')
      const known = words.get(before) ?? []
      const about =
        at === parts.length - 1 ? firstSentence(rowOf(name).about) : `commands of ${[before, word].join(' ').trim()}`
      if (!known.some((choice) => choice.word === word)) words.set(before, [...known, { word, about }])
    }
  }
  words.set(
    'help',
    (words.get('') ?? []).filter(({ word }) => word !== 'help'),
  )
  const described = (flag: FlagName) => ({ word: `--${flag}`, about: firstSentence(aboutFlag(flag)) })
  const flagsOf = (name: CommandName) => [...rowOf(name).flags, ...EVERYWHERE].map(described)
  const flags = new Map(COMMAND_NAMES.map((name) => [name as string, flagsOf(name)]))
  const values = new Map<string, readonly string[]>([['completion', SHELLS]])
  const valued: string[] = []
  for (const [name, { option, value, short, to }] of Object.entries(FLAGS) as [FlagName, Flag][]) {
    if (value === undefined) continue
    const spellings = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
    const known = option === undefined || to !== undefined ? undefined : optionAt(option, all).values
    if (known) for (const spelling of spellings) values.set(spelling, known)
    else valued.push(...spellings)
  }
  // Without a command, a bridge is served.
  return { words, flags: new Map([['', flags.get('serve') ?? []], ...flags]), values, valued }
}

const SCRIPTS: Readonly<Record<CompletedShell, (choices: Choices) => string>> = { bash, zsh, fish, powershell }

function bash({ words, flags, values, valued }: Choices): string {
  const listed = (all: ReadonlyMap<string, readonly Choice[]>) =>
    [...all].map(([before, found]) => `      '${before}') choices='${found.map(({ word }) => word).join(' ')}' ;;`)
  return `# bash: source <(mcp-bridge completion bash)
_mcp_bridge() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command='' choices='' at word
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    # What follows is a program of the machine, and its arguments.
    [[ $word == -- ]] && return
    case "\${command:+$command }$word" in
      ${commandsAndBeginnings(words).join('|')}) command="\${command:+$command }$word" ;;
    esac
  done
  case "$previous" in
${[...values].map(([flag, known]) => `    ${flag}) choices='${known.join(' ')}' ;;`).join('\n')}
    ${valued.join('|')}) return ;;
  esac
  if [[ -z $choices && $current == -* ]]; then
    case "$command" in
${listed(flags).join('\n')}
    esac
  elif [[ -z $choices ]]; then
    case "$command" in
${listed(words).join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _mcp_bridge mcp-bridge
`
}

function zsh({ words, flags, values, valued }: Choices): string {
  const item = ({ word, about }: Choice) => `'${quotedInZsh(word)}:${quotedInZsh(about)}'`
  const listed = (all: ReadonlyMap<string, readonly Choice[]>) =>
    [...all].map(([before, found]) => `      '${before}') choices=(${found.map(item).join(' ')}) ;;`)
  return `#compdef mcp-bridge
# zsh: mcp-bridge completion zsh > "\${fpath[1]}/_mcp-bridge", or source <(mcp-bridge completion zsh)
_mcp_bridge() {
  local command='' at word
  local -a choices
  for ((at = 2; at < CURRENT; at++)); do
    word=$words[at]
    if [[ $word == -- ]]; then
      _files
      return
    fi
    case "\${command:+$command }$word" in
      ${commandsAndBeginnings(words).join('|')}) command="\${command:+$command }$word" ;;
    esac
  done
  case "$words[CURRENT-1]" in
${[...values].map(([flag, known]) => `    ${flag}) choices=(${known.map((one) => `'${quotedInZsh(one)}'`).join(' ')}) ;;`).join('\n')}
    ${valued.join('|')}) _files; return ;;
  esac
  if (( ! $#choices )) && [[ $words[CURRENT] == -* ]]; then
    case "$command" in
${listed(flags).join('\n')}
    esac
  elif (( ! $#choices )); then
    case "$command" in
${listed(words).join('\n')}
    esac
  fi
  if (( $#choices )); then
    _describe 'mcp-bridge' choices
  else
    _files
  fi
}
if [[ $funcstack[1] == _mcp-bridge ]]; then
  _mcp_bridge "$@"
else
  compdef _mcp_bridge mcp-bridge
fi
`
}

function quotedInZsh(text: string): string {
  return text.replaceAll("'", "'\\''").replaceAll(':', '\\:')
}

function fish({ words, flags, values, valued }: Choices): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const at = (before: string) => `-n ${quoted(`test (__mcp_bridge_command) = ${quoted(before)}`)}`
  const lines = [...words].flatMap(([before, found]) =>
    found.map(({ word, about }) => `complete -c mcp-bridge -f ${at(before)} -a ${word} -d ${quoted(about)}`),
  )
  const flagLines = [...flags].flatMap(([before, found]) =>
    found.map(({ word, about }) => {
      const known = values.get(word)
      const more = known ? ` -x -a ${quoted(known.join(' '))}` : valued.includes(word) ? ' -r' : ''
      return `complete -c mcp-bridge ${at(before)} -l ${word.slice(2)}${more} -d ${quoted(about)}`
    }),
  )
  const shells = `complete -c mcp-bridge -f ${at('completion')} -a ${quoted((values.get('completion') ?? []).join(' '))}`
  return `# fish: mcp-bridge completion fish > ~/.config/fish/completions/mcp-bridge.fish
function __mcp_bridge_command
    set -l command ''
    for word in (commandline -opc)[2..-1]
        if test $word = --
            echo a program
            return
        end
        set -l next (string trim -- "$command $word")
        if contains -- $next ${commandsAndBeginnings(words).join(' ')}
            set command $next
        end
    end
    echo $command
end
${[...lines, shells, ...flagLines].join('\n')}
`
}

function powershell({ words, flags, values, valued }: Choices): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`
  const table = (all: ReadonlyMap<string, readonly Choice[]>) =>
    [...all].map(
      ([before, found]) =>
        `    ${quoted(before)} = @(${found.map(({ word, about }) => `@(${quoted(word)}, ${quoted(about)})`).join(', ')})`,
    )
  return `# PowerShell: mcp-bridge completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName mcp-bridge -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @{
${table(words).join('\n')}
  }
  $flags = @{
${table(flags).join('\n')}
  }
  $values = @{
${[...values].map(([flag, known]) => `    ${quoted(flag)} = @(${known.map(quoted).join(', ')})`).join('\n')}
  }
  $valued = @(${valued.map(quoted).join(', ')})
  $given = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  $command = ''
  foreach ($word in ($given | Select-Object -Skip 1)) {
    if ($word -ceq '--') { return }
    $next = "$command $word".Trim()
    if ($words.ContainsKey($next) -or $flags.ContainsKey($next)) { $command = $next }
  }
  $previous = $given[-1]
  if ($values.ContainsKey($previous)) { $choices = @($values[$previous] | ForEach-Object { , @($_, $_) }) }
  elseif ($valued -ccontains $previous) { return }
  elseif ($wordToComplete -like '-*') { $choices = $flags[$command] }
  else { $choices = $words[$command] }
  $choices | Where-Object { $_ -and $_[0] -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}
`
}

/** All commands, and what commands of several words begin with: in quotation marks for a shell. */
function commandsAndBeginnings(words: Choices['words']): string[] {
  const all = [...words].flatMap(([before, found]) => found.map(({ word }) => `${before} ${word}`.trim()))
  return [...new Set([...all.filter((name) => !name.startsWith('help ')), 'help'])].map((name) => `'${name}'`)
}
