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
