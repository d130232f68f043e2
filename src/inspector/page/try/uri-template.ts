/** URI templates of resources: their variables, and the URI for given values. */
import type { JsonRecord } from '../../try/types.js'

/** An expression of a template. The operators of RFC 6570 are ignored. */
const VARIABLE = /\{[+#./;?&]?([^{}]+)\}/g

/** The name of a variable, without its modifier. */
function bare(name: string): string {
  return name.split(/[*:]/, 1)[0] ?? ''
}

/** The names of the variables of a URI template. */
export function variablesOf(template: string): string[] {
  return [...template.matchAll(VARIABLE)].flatMap(([, names = '']) => names.split(',').map(bare))
}

/** The URI of a template with these values. */
export function expanded(template: string, values: JsonRecord): string {
  return template.replace(VARIABLE, (_, names: string) =>
    names
      .split(',')
      .map((name) => encodeURIComponent(String(values[bare(name)] ?? '')))
      .join(','),
  )
}
