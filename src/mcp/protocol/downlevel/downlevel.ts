/**
 * Adapts results, notifications and questions of a modern server to a legacy revision. Changes only what clients would
 * reject or misread. With `strict`, also removes everything that the revision does not define.
 */

import type { Payload } from '../../../base/rpc/splice.js'
import { CALL_TOOL } from '../methods.js'
import { type AdaptedQuestion, elicitation } from './elicitation.js'
import { fit, type Shape } from './fit.js'
import { completeResult, initializeResult, page, promptResult, readResult } from './results.js'
import { samplingParams } from './sampling.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'
import { callResult, listedTool } from './tools.js'

export type { AdaptedQuestion } from './elicitation.js'
export type { Downlevel } from './target.js'

type ToldResult = (result: Payload, to: Downlevel, params: Payload) => Payload

const listOf =
  (key: string, shape: Shape): ToldResult =>
  (result, to) =>
    page(result, key, (item) => fit(item, shape, to), to)

const results: Readonly<Record<string, ToldResult>> = {
  initialize: initializeResult,
  'tools/list': (result, to) => page(result, 'tools', (tool) => listedTool(tool, to), to),
  'prompts/list': listOf('prompts', shapes.prompt),
  'resources/list': listOf('resources', shapes.resource),
  'resources/templates/list': listOf('resourceTemplates', shapes.resourceTemplate),
  [CALL_TOOL]: callResult,
  'prompts/get': promptResult,
  'resources/read': readResult,
  'completion/complete': completeResult,
}

const notifications: Readonly<Record<string, Shape>> = {
  'notifications/progress': shapes.progress,
  'notifications/message': shapes.logMessage,
  'notifications/resources/updated': shapes.resourceUpdated,
  'notifications/resources/list_changed': shapes.listChanged,
  'notifications/tools/list_changed': shapes.listChanged,
  'notifications/prompts/list_changed': shapes.listChanged,
}

/**
 * A result as a client of the revision accepts it. For `tools/list`, notes the tools whose later results must be
 * wrapped.
 */
export function downlevelResult(method: string, params: Payload, result: Payload, to: Downlevel): Payload {
  const adapt = Object.hasOwn(results, method) ? results[method] : undefined
  return adapt ? adapt(result, to, params) : result
}

/** The params of a notification as a client of the revision accepts them. */
export function downlevelNotification(method: string, params: Payload, to: Downlevel): Payload {
  const shape = Object.hasOwn(notifications, method) ? notifications[method] : undefined
  return shape ? (fit(params, shape, to) ?? params) : params
}

/** A question in the form for a client of the revision with these capabilities. */
export function downlevelQuestion(
  method: string,
  params: Payload,
  capabilities: Payload,
  to: Downlevel,
): AdaptedQuestion {
  if (method === 'elicitation/create') return elicitation(params, to)
  const adapted = method === 'sampling/createMessage' ? samplingParams(params, capabilities, to) : params
  return { params: adapted, uplift: (answer) => answer }
}
