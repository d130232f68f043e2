/** The schema of the chart's values, with the comments of values.yaml as descriptions. */
import { readFileSync } from 'node:fs'
import { isMap, parseDocument, type Scalar, type YAMLMap } from 'yaml'

/** A schema of JSON, as far as this reads it. */
export interface ValueSchema {
  description?: string
  properties?: Record<string, ValueSchema | true>
}

/** A value of the chart: its path, and what its comment says; undefined without a comment. */
export interface ChartValue {
  path: readonly string[]
  comment: string | undefined
  /** The values in it. */
  inner: readonly ChartValue[]
}

const CHART = new URL('../config/helm/mcp-bridge/', import.meta.url)

/** The values of the chart. What is in a value of Kubernetes is none. */
export function chartValues(): readonly ChartValue[] {
  const { contents } = parseDocument(readFileSync(new URL('values.yaml', CHART), 'utf8'))
  return valuesIn(contents as YAMLMap<Scalar<string>>, [])
}

function valuesIn(map: YAMLMap<Scalar<string>>, path: readonly string[]): ChartValue[] {
  return map.items.map(({ key, value }, i) => {
    const own = [...path, key.value]
    const text = key.commentBefore ?? (i === 0 ? map.commentBefore : undefined)
    const isOurs = isMap(value) && !value.flow && !/securityContext$/i.test(key.value)
    return { path: own, comment: textOf(text), inner: isOurs ? valuesIn(value as typeof map, own) : [] }
  })
}

/** What follows `--`, in one line. */
function textOf(comment: string | null | undefined): string | undefined {
  const [, text] = /^ -- (\S[\s\S]*)/m.exec(comment ?? '') ?? []
  return text?.replace(/\n /g, ' ').trim()
}

/** The text of the schema. */
export function chartSchema(): string {
  const schema = JSON.parse(readFileSync(new URL('values.schema.json', CHART), 'utf8')) as ValueSchema
  describe(schema, chartValues())
  return `${JSON.stringify(schema, undefined, 2)}\n`
}

function describe({ properties }: ValueSchema, values: readonly ChartValue[]): void {
  for (const { path, comment, inner } of values) {
    const name = path.at(-1) as string
    const own = properties?.[name]
    if (!properties || own === undefined) continue
    const described: ValueSchema = own === true ? {} : own
    properties[name] = { ...described, ...(comment !== undefined && { description: comment }) }
    describe(described, inner)
  }
}
