/** Reads lists of names out of the suite's YAML: its requirements and its expected failures are no more than that. */

/** The names listed under `section`; none if there is no such section. */
export function namesIn(yaml: string, section: string): string[] {
  const names: string[] = []
  let inside = false
  for (const line of yaml.split('\n')) {
    if (/^\w/.test(line)) inside = line.startsWith(`${section}:`)
    const name = /^\s+- ([^\s#]+)\s*(?:#.*)?$/.exec(line)?.[1]
    if (inside && name !== undefined) names.push(name)
  }
  return names
}

/** The names of what is run without counting, in a mode of the suite. */
export function unscoredIn(yaml: string, mode: string): string[] {
  return [...yaml.matchAll(/^\s+- scenario: (\S+)\n\s+leg: (\S+)$/gm)].flatMap(([, name, leg]) =>
    name !== undefined && leg === mode ? [name] : [],
  )
}
