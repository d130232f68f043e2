/** Says in a line what a large JSON value consists of, for a model that does not see the value. */
import { printable } from '../../../base/texts/printable.js'

/** Most members of an object, levels, and characters of a name and of the whole summary. */
const MOST_SHAPE_MEMBERS = 20
const MOST_SHAPE_LEVELS = 4
const MAX_SHAPE_NAME = 64
const MAX_SHAPE = 1_000

/** As in `{total: number, items: [5000 of {id: number, name: string}]}`. */
export function shapeOf(value: unknown): string {
  const shape = shapeAt(value, MOST_SHAPE_LEVELS)
  return shape.length > MAX_SHAPE ? `${shape.slice(0, MAX_SHAPE)}…` : shape
}

function shapeAt(value: unknown, levels: number): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return levels === 0 ? `[${value.length}]` : `[${value.length} of ${shapeAt(value[0], levels - 1)}]`
  }
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  const members = Object.entries(value)
  if (members.length === 0) return '{}'
  if (levels === 0) return `{${members.length} members}`
  const shown = members
    .slice(0, MOST_SHAPE_MEMBERS)
    .map(([name, member]) => `${printable(name, MAX_SHAPE_NAME)}: ${shapeAt(member, levels - 1)}`)
  const more = members.length - shown.length
  return `{${[...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')}}`
}
