/**
 * Checks a value against a JSON Schema that may be hostile: bounded in size and depth, and it follows no reference to another
 * document. Time and memory cannot be bounded here, so it runs in a thread of its own (checks.ts).
 */
import { Ajv, type AnySchema, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { tokenOf } from '../../base/rpc/pointer.js'

/** The result of a check. `ok: null`: the value could not be checked, for this reason. */
export type CheckedValue =
  | { ok: true }
  | { ok: false; errors: readonly { at: string; message: string }[]; more: number }
  | { ok: null; why: string }

/** Most levels of a schema and a value. */
const MAX_CHECKED_LEVELS = 200
/** Most errors, and characters of one message. */
const MAX_ERRORS = 50
const MAX_CHECK_MESSAGE = 500

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  logger: false,
  // Keys such as __proto__ and toString only count if a value has them itself.
  ownProperties: true,
  // In 2020-12, a format is a note for people.
  validateFormats: false,
  inlineRefs: false,
}

const metas = new Map<typeof Ajv | typeof Ajv2020, Ajv | Ajv2020>()

export function checked(schema: unknown, value: unknown): CheckedValue {
  if (!hasAtMost(schema, MAX_CHECKED_LEVELS) || !hasAtMost(value, MAX_CHECKED_LEVELS))
    return { ok: null, why: `The schema or the value is deeper than ${MAX_CHECKED_LEVELS} levels.` }
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null || Array.isArray(schema)))
    return { ok: null, why: 'The schema is neither an object nor a boolean.' }
  try {
    const fits = compiled(schema)
    if (fits(value)) return { ok: true }
    const errors = (fits.errors ?? []).map(errorOf)
    return { ok: false, errors: errors.slice(0, MAX_ERRORS), more: Math.max(0, errors.length - MAX_ERRORS) }
  } catch (error) {
    return { ok: null, why: whyNotChecked(error) }
  }
}

/** Compiles a schema: as 2020-12, the dialect of MCP, unless `$schema` names an older draft. */
function compiled(schema: object | boolean) {
  const { $schema: dialect, ...rest } = typeof schema === 'object' ? (schema as Record<string, unknown>) : {}
  const own = (typeof schema === 'object' ? rest : schema) as AnySchema
  const Dialect = typeof dialect === 'string' && /draft-0\d/.test(dialect) ? Ajv : Ajv2020
  const meta = metaOf(Dialect)
  if (meta.validateSchema(own) !== true) throw new TypeError(meta.errorsText())
  const make = (more: Options) => new Dialect({ ...more, validateSchema: false }).compile(own)
  try {
    return make(OPTIONS)
  } catch (error) {
    // Some patterns are only valid without Unicode, as those of older validators are.
    if (error instanceof SyntaxError) return make({ ...OPTIONS, unicodeRegExp: false })
    throw error
  }
}

/** What validates schemas of a dialect: its meta-schema takes longer to compile than most schemas. */
function metaOf(Dialect: typeof Ajv | typeof Ajv2020): Ajv | Ajv2020 {
  const meta = metas.get(Dialect) ?? new Dialect(OPTIONS)
  metas.set(Dialect, meta)
  return meta
}

function errorOf({ instancePath, keyword, params, message = 'is not valid' }: ErrorObject): {
  at: string
  message: string
} {
  const named = (key: unknown) => `${instancePath}/${tokenOf(String(key))}`
  if (keyword === 'required' || keyword === 'dependentRequired')
    return { at: named(params['missingProperty']), message: 'is required' }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties')
    return { at: named(params['additionalProperty'] ?? params['unevaluatedProperty']), message: 'is not in the schema' }
  const allowed: unknown = params['allowedValues'] ?? params['allowedValue']
  const words = allowed === undefined ? message : `${message}: ${JSON.stringify(allowed)}`
  return { at: instancePath, message: words.slice(0, MAX_CHECK_MESSAGE) }
}

function whyNotChecked(error: unknown): string {
  const { message, missingRef } = error as Error & { missingRef?: string }
  return missingRef === undefined
    ? `The schema is not valid: ${message.slice(0, MAX_CHECK_MESSAGE)}.`
    : `The schema refers to ${missingRef.slice(0, MAX_CHECK_MESSAGE)}, which is not in it. Other documents are not read.`
}

/** Whether a value has at most these levels. Without recursion: it may have any number. */
function hasAtMost(value: unknown, levels: number): boolean {
  let level = [value]
  for (let depth = 0; depth <= levels; depth++) {
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
    if (level.length === 0) return true
  }
  return false
}
