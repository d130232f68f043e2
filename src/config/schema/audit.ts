/** Options about who did what, and how often: the audit log, and limits of single tools. */
import * as z from 'zod'
import { count, namePattern, shortTime, text } from './values.js'

/** `audit` of the bridge. */
export const audit = z
  .strictObject({
    file: text.optional().describe('File to which lines are appended. If it is moved away, a new one is created.'),
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
        'If a line cannot be written, answer its call with an error, and send no calls to servers until writing works again.',
      ),
    arguments: z
      .array(text)
      .default([])
      .describe(
        'Names of tool arguments whose values are written. Default: none; a digest of all arguments is always written.',
      ),
  })
  .optional()
  .describe(
    'The audit log: a line of JSON for each call of a tool, prompt or resource, and each refused request, written before the answer is sent. Sessions of legacy clients with legacy servers over HTTP are then translated.',
  )

/** One entry of `limits.tools`. */
export const toolLimit = z.strictObject({
  tools: namePattern.describe(
    'Tools that the limit is for: a glob of <server>__<tool>, such as "github__create_*", or "*" for all.',
  ),
  per: z
    .enum(['principal', 'all'])
    .default('principal')
    .describe('Whether each principal has the limit for itself, or all principals share it.'),
  max: count.describe('Most calls in one period.'),
  every: shortTime.describe('Length of a period, which begins with its first call: 30s, 1m, 24h.'),
})
