/** A Dockerfile as far as the tests have to understand it: stages, and instructions with their flags and words. */

export interface Instruction {
  name: string
  flags: Record<string, string>
  /** All after the flags: what JSON says, or what blanks separate. */
  words: string[]
  text: string
}

export interface Stage {
  name: string
  from: string
  instructions: Instruction[]
}

export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const variables = new Map<string, string>()
  const stages: Stage[] = []
  for (const line of lines) {
    const instruction = parseInstruction(line)
    const stage = stages.at(-1)
    if (instruction.name === 'FROM') {
      const [from = '', , name = `${stages.length}`] = instruction.words
      stages.push({
        name,
        from: from.replace(/\$\{(\w+)\}/g, (_all, key: string) => variables.get(key) ?? ''),
        instructions: [],
      })
    } else if (stage) stage.instructions.push(instruction)
    else variables.set(...(instruction.text.split('=') as [string, string]))
  }
  return stages
}

/** The instructions of a stage that have a name. */
export function named(stage: Stage, name: string): Instruction[] {
  return stage.instructions.filter((instruction) => instruction.name === name)
}

function parseInstruction(line: string): Instruction {
  const [, name = '', flags = '', rest = ''] = /^(\w+)((?:\s+--[\w-]+=\S+)*)\s+(.*)$/.exec(line) ?? []
  const words = rest.startsWith('[') ? (JSON.parse(rest) as string[]) : rest.split(/\s+/)
  return {
    name,
    flags: Object.fromEntries([...flags.matchAll(/--([\w-]+)=(\S+)/g)].map(([, key, value]) => [key, value])),
    words,
    text: rest,
  }
}

/** Whether a path of the repository gets into a build, by a .dockerignore that leaves everything out but what it names. */
export function inContext(dockerignore: string, path: string): boolean {
  const lines = dockerignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  if (lines[0] !== '*') throw new Error('The .dockerignore is expected to begin with leaving everything out')
  return lines.slice(1).some((line) => line === `!${path}` || path.startsWith(`${line.slice(1)}/`))
}
