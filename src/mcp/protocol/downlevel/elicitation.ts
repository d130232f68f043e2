/** Adapts elicitation forms to older clients, and their answers to newer servers. */
import {
  EMPTY,
  edit,
  type Json,
  objectIn,
  type Payload,
  parseObject,
  raw,
  value,
  write,
} from '../../../base/rpc/splice.js'
import { withoutIdleDialect } from './dialect.js'
import { fit } from './fit.js'
import { entriesOf, inObject, mapMembers, objectOf } from './members.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'

/** A question adapted to a client. */
export interface AdaptedQuestion {
  params: Payload
  /** Turns the client's answer into one that the server understands. */
  uplift(answer: Payload): Payload
}

/** A multiple-choice field. The client gets one checkbox for each option. */
interface Selection {
  name: string
  options: readonly Option[]
  required: boolean
  least: number
  most: number
}

interface Option {
  value: string
  title: string
  /** The name of the option's checkbox. */
  box: string
}

const CANCEL = parseObject('{"action":"cancel"}')

export function elicitation(params: Payload, to: Downlevel): AdaptedQuestion {
  const asIs = (answer: Payload) => answer
  // URLs need no change. The caller checks whether the client supports them.
  if (value(params, 'mode') === 'url') return { params, uplift: asIs }
  const asked = inObject(fit(params, shapes.form, to) ?? params, 'requestedSchema', (schema) =>
    to.strict ? schema : withoutIdleDialect(schema),
  )
  const schema = objectIn(asked, 'requestedSchema')
  const fields = schema && objectIn(schema, 'properties')
  if (!fields) return { params: asked, uplift: asIs }
  const selections = to.traits.elicitationChoices ? [] : selectionsOf(schema, fields)
  const adapted = withBoxes(
    mapMembers(fields, (field) => adaptedField(field, to)),
    selections,
  )
  if (adapted === fields) return { params: asked, uplift: asIs }
  const form = withoutRequired(edit(schema, { properties: adapted }), selections)
  return {
    params: edit(asked, { requestedSchema: form }),
    uplift: (answer) => (selections.length === 0 ? answer : reassembled(answer, selections)),
  }
}

function adaptedField(field: Payload, to: Downlevel): Payload {
  const type = value(field, 'type')
  const shape = typeof type === 'string' && Object.hasOwn(shapes.fields, type) ? shapes.fields[type] : undefined
  const fitting = (shape && fit(field, shape, to)) ?? field
  return to.traits.elicitationChoices ? fitting : withTitlesApart(fitting)
}

/** Replaces titled options (`oneOf`) by `enum` and `enumNames`. */
function withTitlesApart(field: Payload): Payload {
  const options = optionsOf(value(field, 'oneOf'))
  if (options.length === 0) return field
  return edit(field, {
    oneOf: undefined,
    enum: JSON.stringify(options.map(({ value }) => value)),
    enumNames: JSON.stringify(options.map(({ title }) => title)),
  })
}

/** The options in a list of constants with titles; none for another value. */
function optionsOf(list: unknown): Omit<Option, 'box'>[] {
  if (!Array.isArray(list)) return []
  const options = list.map((option: { const?: unknown; title?: unknown } | null) => {
    const [value, title] = [option?.const, option?.title]
    return typeof value === 'string' ? { value, title: typeof title === 'string' ? title : value } : undefined
  })
  return options.every((option) => option !== undefined) ? options : []
}

function selectionsOf(schema: Payload, fields: Payload): Selection[] {
  const entries = entriesOf(fields)
  const taken = new Set(entries.map(({ key }) => key))
  const required = distinct(value(schema, 'required'))
  return entries.flatMap(({ key: name, object: field }): Selection[] => {
    if (!field || value(field, 'type') !== 'array') return []
    const items = value(field, 'items') as { enum?: unknown; anyOf?: unknown; oneOf?: unknown } | null | undefined
    const plain = Array.isArray(items?.enum) ? items.enum.map((one: unknown) => ({ const: one })) : undefined
    const options = optionsOf(plain ?? items?.anyOf ?? items?.oneOf)
    if (options.length === 0) return []
    const bound = (key: string, otherwise: number) => {
      const stated = value(field, key)
      return typeof stated === 'number' ? stated : otherwise
    }
    return [
      {
        name,
        options: options.map((option, at) => ({ ...option, box: freeName(name, at, taken) })),
        required: required.has(name),
        least: bound('minItems', 0),
        most: bound('maxItems', Number.POSITIVE_INFINITY),
      },
    ]
  })
}

/** The distinct elements of a list; none if it is not a list. */
function distinct(list: unknown): Set<unknown> {
  return new Set(Array.isArray(list) ? list : [])
}

/** An unused name for a checkbox. */
function freeName(name: string, at: number, taken: Set<string>): string {
  let box = `${name}__${at}`
  while (taken.has(box)) box += '_'
  taken.add(box)
  return box
}

/** Replaces each multiple-choice field by its checkboxes. */
function withBoxes(fields: Payload, selections: readonly Selection[]): Payload {
  if (selections.length === 0) return fields
  const byName = new Map(selections.map((selection) => [selection.name, selection]))
  const members = entriesOf(fields).flatMap(({ key, object, text }) => {
    const selection = byName.get(key)
    return selection && object ? boxes(selection, object) : text()
  })
  return objectOf(members)
}

function boxes({ options }: Selection, field: Payload): Json[] {
  const preset = distinct(value(field, 'default'))
  const about = raw(field, 'description') ?? raw(field, 'title')
  return options.map(({ value, title, box }) => {
    const field = edit(EMPTY, {
      type: '"boolean"',
      title: JSON.stringify(title),
      description: about?.startsWith('"') ? about : undefined,
      default: preset.has(value) ? 'true' : undefined,
    })
    return `${JSON.stringify(box)}:${write(field)}`
  })
}

/**
 * Removes multiple-choice fields from `required`: `reassembled` checks the number of options, and no checkbox is
 * required.
 */
function withoutRequired(schema: Payload, selections: readonly Selection[]): Payload {
  const left = distinct(value(schema, 'required'))
  const before = left.size
  for (const { name } of selections) left.delete(name)
  if (left.size === before) return schema
  return edit(schema, { required: left.size === 0 ? undefined : JSON.stringify([...left]) })
}

/** The answer with the checkboxes turned back into multiple-choice fields. Too few or too many options cancel it. */
function reassembled(answer: Payload, selections: readonly Selection[]): Payload {
  if (value(answer, 'action') !== 'accept') return answer
  const entries = entriesOf(objectIn(answer, 'content') ?? EMPTY)
  const ticked = new Map(entries.map(({ key, opens }) => [key, opens === 't']))
  const gone = new Set(selections.flatMap(({ name, options }) => [name, ...options.map(({ box }) => box)]))
  const members = entries.filter(({ key }) => !gone.has(key)).map((entry) => entry.text())
  for (const { name, options, required, least, most } of selections) {
    const answered = options.some(({ box }) => ticked.has(box))
    const chosen = options.filter(({ box }) => ticked.get(box)).map(({ value }) => value)
    // With an optional field that needs at least one option, an empty form means that the field was left out.
    if (!required && chosen.length === 0 && (!answered || least > 0)) continue
    if (chosen.length < least || chosen.length > most) return CANCEL
    members.push(`${JSON.stringify(name)}:${JSON.stringify(chosen)}`)
  }
  return edit(answer, { content: `{${members.join(',')}}` })
}
