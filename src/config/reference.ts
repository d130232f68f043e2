/** The list of options from the schema: path, type, default and description. */
import { jsonSchema } from './json-schema.js'

/** An option, or an object of options. */
export interface ReferenceOption {
  /** As in `limits.calls` and `mcpServers.<name>.era`. */
  path: string
  /** The kind of servers with the option; undefined for both kinds and for options of the bridge. */
  kind: 'stdio' | 'http' | undefined
  /** Its values in words, such as `"auto" or "legacy"`. */
  type: string
  /** Its values, if they can be listed. */
  values?: readonly string[]
  /** Undefined if the description has it, or if there is none. */
  default: unknown
  /** The description in the schema. */
  about: string
  /** It only contains further options. */
  isGroup: boolean
}

interface Node {
  description?: string
  type?: string
  enum?: readonly unknown[]
  const?: unknown
  default?: unknown
  items?: Node
  anyOf?: readonly Node[]
  properties?: Readonly<Record<string, Node>>
  additionalProperties?: Node | boolean
}

const SERVER = 'mcpServers.<name>'

/** All options, in the order of the schema. */
export function options(): readonly ReferenceOption[] {
  const found: ReferenceOption[] = []
  const visit = (node: Node, path: string, kind: ReferenceOption['kind']): void => {
    const { description, default: initial } = node
    const own = childrenOf(node)
    const isGroup = node.properties !== undefined
    if (description !== undefined && path !== '') {
      const twin = found.find((one) => one.path === path && one.about === description)
      if (twin) twin.kind = undefined
      else
        found.push({
          path,
          kind,
          type: typeOf(node),
          ...(node.enum && { values: node.enum.map(String) }),
          default: isGroup ? undefined : initial,
          about: description,
          isGroup,
        })
    }
    for (const [key, child] of own) {
      const at = path === '' ? key : `${path}.${key}`
      if (at === SERVER)
        for (const [i, one] of (child.anyOf ?? []).entries()) visit(one, at, i === 0 ? 'stdio' : 'http')
      else visit(child, at, kind)
    }
  }
  visit(jsonSchema() as Node, '', undefined)
  return found
}

/** The option with this path. Throws if there is none. */
export function optionAt(path: string, all: readonly ReferenceOption[] = options()): ReferenceOption {
  const found = all.find((one) => one.path === path)
  if (!found) throw new Error(`The schema has no option ${path}`)
  return found
}

/** Names of the options in the object under these keys. */
export function keysAt(keys: readonly string[]): string[] {
  const names = nodesAt(keys).flatMap((node) => childrenOf(node).map(([name]) => name))
  return [...new Set(names)].filter((name) => name !== '<name>')
}

/** The description of the option under these keys. */
export function aboutAt(keys: readonly string[]): string | undefined {
  return nodesAt(keys).find(({ description }) => description !== undefined)?.description
}

/** The type of an option, in words. */
export function typeAt(keys: readonly string[]): string | undefined {
  const types = [
    ...new Set(
      nodesAt(keys)
        .flatMap((node) => node.anyOf ?? [node])
        .flatMap(inWords),
    ),
  ]
  if (types.length === 0) return undefined
  return types.length === 1 ? types[0] : `${types.slice(0, -1).join(', ')} or ${types.at(-1)}`
}

function nodesAt(keys: readonly string[]): readonly Node[] {
  let nodes: readonly Node[] = [jsonSchema() as Node]
  for (const key of keys)
    nodes = nodes.flatMap((node) => [
      ...childrenOf(node).flatMap(([name, child]) => (fits(name, key) ? [child] : [])),
      ...(/^\d+$/.test(key) ? itemsOf(node) : []),
    ])
  return nodes
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

function inWords({ enum: values, const: one, type = '' }: Node): string[] {
  if (values) return values.map((value) => JSON.stringify(value))
  if (one !== undefined) return [JSON.stringify(one)]
  return [KINDS[type] ?? 'another value']
}

function fits(name: string, key: string): boolean {
  return name === key || name === '<name>'
}

/** The children of a node: its properties, those of its alternatives, and `<name>` for the values of a map. */
function childrenOf(node: Node): [key: string, node: Node][] {
  const { properties = {}, additionalProperties, anyOf = [] } = node
  const isMap = typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0
  return [
    ...Object.entries(properties),
    ...(isMap ? [['<name>', additionalProperties] as [string, Node]] : []),
    ...anyOf.flatMap(childrenOf),
  ]
}

/** What the elements of a list are. */
function itemsOf({ items, anyOf = [] }: Node): Node[] {
  return [...(items ? [items] : []), ...anyOf.flatMap(itemsOf)]
}

function typeOf(node: Node): string {
  if (node.anyOf && node.properties === undefined) return [...new Set(node.anyOf.map(typeOf))].join(' or ')
  if (node.enum) return node.enum.map((value) => JSON.stringify(value)).join(' or ')
  if (node.const !== undefined) return JSON.stringify(node.const)
  if (node.type === 'array') return `list of ${node.items ? typeOf(node.items) : 'values'}`
  return node.type ?? 'any'
}
