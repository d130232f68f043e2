/**
 * Wraps structured results that are not objects, which revisions before 2026-07-28 do not allow: moves the value and its
 * schema into a member `result`.
 */
import { EMPTY, edit, objectIn, opens, type Payload, raw, value, write } from '../../../base/rpc/splice.js'
import { mapMembers, mapSchemas } from './members.js'
import { DEFINITIONS, type Sound } from './schemas.js'

const STRUCTURED = 'structuredContent'
const WHERE = '/properties/result'

export function isObjectOrAbsent(holder: Payload): boolean {
  return (opens(holder, STRUCTURED) ?? '{') === '{'
}

/** The holder with its structured content under `result`. */
export function wrapped(holder: Payload): Payload {
  return edit(holder, { [STRUCTURED]: `{"result":${raw(holder, STRUCTURED) ?? 'null'}}` })
}

/**
 * The schema of an object with the value under `result`. `$defs` stays at the root, and references still point to the
 * same schemas. Schemas with `$id` or anchors cannot be moved like this.
 */
export function wrappedSchema(schema: Payload, { referring }: Sound): Payload {
  const definitions = objectIn(schema, DEFINITIONS)
  const inner = edit(schema, { $schema: undefined, [DEFINITIONS]: undefined })
  return edit(EMPTY, {
    $schema: raw(schema, '$schema'),
    type: '"object"',
    properties: `{"result":${write(referring ? moved(inner) : inner)}}`,
    required: '["result"]',
    [DEFINITIONS]: definitions && write(referring ? mapMembers(definitions, moved) : definitions),
  })
}

/** The schema with its references adapted to the new place. */
function moved(schema: Payload): Payload {
  const reference = value(schema, '$ref')
  let fitting = schema
  if (typeof reference === 'string') {
    const there = movedReference(reference)
    if (there !== reference) fitting = edit(fitting, { $ref: JSON.stringify(there) })
  }
  return mapSchemas(fitting, moved)
}

function movedReference(reference: string): string {
  const path = decodeURIComponent(reference.slice(1))
  if (path === `/${DEFINITIONS}` || path.startsWith(`/${DEFINITIONS}/`)) return reference
  return path === '' || path.startsWith('/') ? `#${WHERE}${reference.slice(1)}` : reference
}
