/**
 * Restricts clients to selected tools, prompts, resources and types of events of a server, with other descriptions if configured. Hidden
 * items are unknown: they cannot be called, read, completed or subscribed to, in any spelling. Methods unknown to the
 * bridge could name a hidden item: they are refused, and what announces them is not offered. A choice that says that it
 * hides nothing changes nothing.
 *
 * Results of visible items are not changed. They may contain links to hidden resources, which cannot be read.
 */

import { Fault } from '../../../base/fault/fault.js'
import { MAX_LOGGED_NAME } from '../../../base/limits/constants.js'
import type { Memory } from '../../../base/limits/memory.js'
import { edit, has, type Json, mapElements, objectIn, opens, type Payload, raw } from '../../../base/rpc/splice.js'
import { ECHOED, printable } from '../../../base/texts/printable.js'
import { withoutEvents, withoutForeign } from '../../../mcp/protocol/announced.js'
import {
  type Call,
  type Final,
  type Handler,
  type Policy,
  type ServerNotification,
  withResult,
} from '../../../mcp/protocol/call.js'
import { CALL_TOOL, EVENT_LIST, EVENT_USES, isOfEvents, LISTEN, methodTraits } from '../../../mcp/protocol/methods.js'
import { UPDATED, withoutEventTypes } from '../../../mcp/protocol/subscriptions.js'
import { isUnambiguous, stringIn } from '../unambiguous.js'
import { type NamedItem, unknownItem } from '../unknown.js'
import { addresses } from './addresses.js'
import { ChosenList } from './listed.js'
import { type Rules, showsAll } from './names.js'
import { asSeen, namedAsSeen, type SeenItem, type ToolRules, toolsAsSeen } from './seen.js'
import { withHeaders } from './tools.js'

/** The choice for a server. Undefined members do not restrict anything. */
export interface ChoiceOptions {
  server: string
  tools?: ToolRules | undefined
  prompts?: Rules | undefined
  resources?: Rules | undefined
  /** Types of events. Without `allow` and `deny`, they are not restricted. */
  events?: Rules | undefined
  memory: Memory
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

type Chosen = 'tools' | 'prompts' | 'resources' | 'events'
type Answer = (call: Call, next: Handler) => Promise<Final>

/** Methods that name no tool, prompt or resource. */
const NAMELESS = [
  ...['tasks/get', 'tasks/update', 'tasks/cancel'],
  // Of sessions of the legacy era.
  ...['ping', 'logging/setLevel', 'tasks/list', 'tasks/result'],
]
/** Methods that name one. They pass unless the choice restricts that kind. */
const NAMING = [
  ...['tools/list', CALL_TOOL, 'prompts/list', 'prompts/get', LISTEN],
  ...['resources/list', 'resources/templates/list', 'resources/read'],
  ...['resources/subscribe', 'resources/unsubscribe'],
  ...['skills/list', 'skills/get', 'resources/directory/read'],
  ...[EVENT_LIST, ...EVENT_USES],
]

/** Whether a choice says that it hides nothing. Then all passes, also what the bridge does not know. */
export function hidesNothing({ tools, prompts, resources, events }: Pick<ChoiceOptions, Chosen>) {
  const isRewritten = Object.keys(tools?.override ?? {}).length > 0
  return !isRewritten && [tools, prompts, resources, rulesIn(events)].every((rules) => !rules || showsAll(rules))
}

/** The rules in the option for events, which may have other members alone. */
function rulesIn(events: Rules | undefined): Rules | undefined {
  return events && (events.allow || events.deny.length > 0) ? events : undefined
}

/** The policy of one server. */
export function choice({ tools, prompts, resources, events: given, ...shared }: ChoiceOptions): Policy {
  const events = rulesIn(given)
  if (hidesNothing({ tools, prompts, resources, events })) return (next) => next
  const shownTools = tools && new ChosenList({ ...shared, method: 'tools/list', see: toolsAsSeen(tools) })
  const shownPrompts =
    prompts && new ChosenList({ ...shared, method: 'prompts/list', see: namedAsSeen('prompts', prompts) })
  const hidesEvents = events?.allow?.length === 0
  const shownEvents =
    events && !hidesEvents && new ChosenList({ ...shared, method: EVENT_LIST, see: namedAsSeen('events', events) })
  const isShown = resources && addresses(resources)
  const pass: Answer = (call, next) => next(call)
  const answers: Readonly<Record<string, Answer>> = {
    ...Object.fromEntries(
      [...NAMELESS, ...NAMING].flatMap((method) => (hidesEvents && isOfEvents(method) ? [] : [[method, pass]])),
    ),
    'server/discover': discovering(hidesEvents),
    ...(shownTools && { 'tools/list': listing(shownTools), [CALL_TOOL]: using(shownTools, 'tool') }),
    ...(shownPrompts && { 'prompts/list': listing(shownPrompts), 'prompts/get': using(shownPrompts, 'prompt') }),
    ...(shownEvents && {
      [EVENT_LIST]: listing(shownEvents),
      ...Object.fromEntries([...EVENT_USES].map((method) => [method, using(shownEvents, 'event')])),
    }),
    ...(isShown && {
      'resources/list': filtering('resources', isShown),
      'resources/templates/list': filtering('resourceTemplates', isShown, 'uriTemplate'),
      'skills/list': filtering('skills', isShown),
      'resources/read': reading(isShown, pass),
      'resources/subscribe': reading(isShown, pass),
      'resources/unsubscribe': reading(isShown, pass),
      'skills/get': reading(isShown, pass),
      'resources/directory/read': reading(isShown, filtering('resources', isShown)),
    }),
    [LISTEN]: listening({ isShown, hidesEvents }),
    'completion/complete': completing(shownPrompts, isShown),
  }
  return (next) =>
    async function chosenCall(call) {
      // Methods of the legacy era alone are known in sessions of that era.
      const isKnown = call.link !== undefined || methodTraits(call.method).eras !== 'legacy'
      const answer = isKnown && Object.hasOwn(answers, call.method) ? answers[call.method] : undefined
      if (answer) return answer(call, next)
      throw new Fault('methodNotFound', `Method not found: ${printable(call.method, ECHOED)}`)
    }
}

/** What the server offers, without what announces methods that the bridge does not know. */
function discovering(hidesEvents: boolean): Answer {
  return async (call, next) =>
    withResult(await next(call), (result) => {
      const known = withoutForeign(result)
      return hidesEvents ? withoutEvents(known) : known
    })
}

/** A list of tools, prompts or types of events. */
function listing(shown: ChosenList<SeenItem>): Answer {
  return (call, next) => shown.answer(call, next)
}

/** The call of a tool, or the use of a prompt or of a type of events. */
function using(shown: ChosenList<SeenItem>, what: NamedItem): Answer {
  return async (call, next) => {
    const name = stringIn(call.params, 'name')
    const item = await found(shown, what, call, name, next)
    if (item.name !== name) call.log.note({ original: item.name.slice(0, MAX_LOGGED_NAME) })
    const { rewriting, headers } = item
    const params = withExactly(rewriting ? rewriting.params(call.params) : call.params, 'name', item.name)
    const paramHeaders = headers && call.paramHeaders && withHeaders(call.paramHeaders, headers)
    if (params === call.params) return next(call)
    return next({ ...call, params, called: call.called ?? name, ...(paramHeaders && { paramHeaders }) })
  }
}

/** The visible item with a name. Rejects with the Fault of an unknown name. */
async function found(
  shown: ChosenList<SeenItem>,
  what: NamedItem,
  call: Call,
  name: string | undefined,
  next: Handler,
): Promise<SeenItem> {
  if (name === undefined) throw new Fault('invalidParams', 'The name must be a string and must not be repeated')
  return (await shown.find(call, name, next)) ?? unknownItem(call, what, name)
}

type IsShown = (uri: string) => boolean

/** A list of resources or templates. */
function filtering(key: string, isShown: IsShown, name = 'uri'): Answer {
  const see = asSeen(key, name, (item, uri) => (isShown(uri) ? { shown: item, name: uri, item } : undefined))
  return async (call, next) => withResult(await next(call), (page) => see(page).result)
}

/** A request for one resource. */
function reading(isShown: IsShown, answer: Answer): Answer {
  return async (call, next) => {
    const uri = checked(isShown, call, call.params)
    const params = withExactly(call.params, 'uri', uri)
    return answer(params === call.params ? call : { ...call, params }, next)
  }
}

/** The URI in an object. Throws the Fault of an unknown resource. */
function checked(isShown: IsShown, call: Call, naming: Payload): string {
  const uri = stringIn(naming, 'uri')
  if (uri === undefined) throw new Fault('invalidParams', 'The URI must be a string and must not be repeated')
  if (isShown(uri)) return uri
  call.log.note({ refused: 'unknown_resource' })
  const called = call.called ?? uri
  const data = called.length > ECHOED ? {} : { uri: called }
  throw new Fault('invalidParams', `Resource not found: ${printable(called, ECHOED)}`, { data })
}

/** A completion, which must refer to a prompt or to a template of URIs. */
function completing(prompts: ChosenList<SeenItem> | undefined, isShown: IsShown | undefined): Answer {
  return async (call, next) => {
    const { params } = call
    const ref = isUnambiguous(params, 'ref') ? objectIn(params, 'ref') : undefined
    const type = ref && stringIn(ref, 'type')
    if (!ref || (type !== 'ref/prompt' && type !== 'ref/resource'))
      throw new Fault(
        'invalidParams',
        'params.ref must not be repeated, and must have the type "ref/prompt" or "ref/resource"',
      )
    let exact = ref
    // A server may ignore the type and look at the members instead, so each of them is checked.
    if (prompts && (type === 'ref/prompt' || !isUnambiguous(ref, 'name') || has(ref, 'name')))
      exact = withExactly(exact, 'name', (await found(prompts, 'prompt', call, stringIn(ref, 'name'), next)).name)
    if (isShown && (type === 'ref/resource' || !isUnambiguous(ref, 'uri') || has(ref, 'uri')))
      exact = withExactly(exact, 'uri', checked(isShown, call, ref))
    return next(exact === ref ? call : { ...call, params: edit(params, { ref: exact }) })
  }
}

/** A subscription, without what is hidden. */
function listening({ isShown, hidesEvents }: { isShown: IsShown | undefined; hidesEvents: boolean }): Answer {
  const answer: Answer = isShown ? listeningTo(isShown) : (call, next) => next(call)
  return hidesEvents ? (call, next) => answer(withoutEventTypes(call), next) : answer
}

/** A subscription, with hidden resources silently removed. */
function listeningTo(isShown: IsShown): Answer {
  const isUpdateShown = ({ method, params }: ServerNotification) => {
    const uri = method === UPDATED ? stringIn(params, 'uri') : undefined
    return method !== UPDATED || (uri !== undefined && isShown(uri))
  }
  return (call, next) => {
    const { params } = call
    const filter = objectIn(params, 'notifications')
    if (!isUnambiguous(params, 'notifications') || (filter && !isList(filter, 'resourceSubscriptions')))
      throw new Fault('invalidParams', 'The filter and its resourceSubscriptions must not be repeated')
    const uris = filter && mapElements(filter, 'resourceSubscriptions', () => [], keptIf(isShown))
    return next({
      ...call,
      ...(uris && { params: edit(params, { notifications: edit(filter, { resourceSubscriptions: uris }) }) }),
      notify: (told) => (isUpdateShown(told) ? call.notify(told) : undefined),
    })
  }
}

const keptIf = (isShown: IsShown) => (json: Json) =>
  json.startsWith('"') && isShown(JSON.parse(json) as string) ? undefined : []

/** Whether a member is a list or missing, for every parser. */
function isList(payload: Payload, key: string): boolean {
  return isUnambiguous(payload, key) && [undefined, '['].includes(opens(payload, key))
}

/** The object with this text under `key`, unambiguous for every parser. */
function withExactly(payload: Payload, key: string, text: string): Payload {
  const json = JSON.stringify(text)
  return raw(payload, key) === json ? payload : edit(payload, { [key]: json })
}
