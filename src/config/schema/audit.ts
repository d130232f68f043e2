/** Options about who did what, and how often: the audit log, and limits of single tools. */
import * as z from 'zod'
import { count, namePattern, text } from './values.js'

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000 } as const

/** `audit` of the bridge. */
export const audit = z
  .strictObject({
    file: text.optional().describe('File to which lines are appended. A file that is moved away is created again.'),
    stdout: z.boolean().default(false).describe('Write the lines to stdout instead.'),
    otlp: z
      .boolean()
      .default(false)
      .describe(
        'Send the lines to an OpenTelemetry collector instead. The variables OTEL_EXPORTER_OTLP_LOGS_* and OTEL_EXPORTER_OTLP_* say where and how.',
      ),
    required: z
      .boolean()
      .default(false)
      .describe(
        'Answer calls with an error whose line cannot be written, and send no more to servers until one can be.',
      ),
    arguments: z
      .array(text)
      .default([])
      .describe('Arguments of tools whose values are written, by name. Default: only a digest of all.'),
  })
  .optional()
  .describe(
    'The audit log: a line of JSON for each call of a tool, prompt or resource, and each refused request, written before the answer is sent. Nothing is relayed unchanged then.',
  )

/** One entry of `limits.tools`. */
export const toolLimit = z.strictObject({
  tools: namePattern.describe('Tools, as a glob of <server>__<tool>: "github__create_*", or "*" for all.'),
  per: z.enum(['principal', 'all']).default('principal').describe('Whose calls are counted together.'),
  max: count.describe('Most calls.'),
  every: z
    .string()
    .regex(/^[1-9]\d{0,3}[smh]$/, 'has to be like 30s, 1m or 24h')
    .transform((one) => Number(one.slice(0, -1)) * UNITS[one.at(-1) as keyof typeof UNITS])
    .describe('Time in which they are counted, from the first call on: 30s, 1m, 24h.'),
})
