/** Every member of every message with a value of another kind, missing, and twice. */
import { type Era, type Text, text } from './input.js'
import { type Message, messagesOf, VALUES } from './messages.js'

/** Stands for the value that is put into its place as JSON. */
const PLACE = '@@here@@'
/** Levels that are gone down into a message. */
const LEVELS = 3

export function* fields(era: Era): Iterable<Text> {
  for (const message of messagesOf(era))
    for (const path of pathsOf(message)) {
      // What all messages have is tried in the first; its envelope too.
      const isShared = path.length === 1 || path[1] === '_meta'
      if (isShared && message.method !== 'tools/call') continue
      for (const [name, body] of variantsOf(message, path)) {
        const said = path.length === 1 && path[0] === 'method' ? {} : { method: message.method }
        const tool = message.params['name'] ?? message.params['uri'] ?? message.params['taskId']
        yield text('fields', `${message.method} ${path.join('.')}: ${name}`, body, {
          ...said,
          ...(typeof tool === 'string' && { tool }),
          want: wantOf(path, name),
        })
      }
    }
}

function* variantsOf(message: Message, path: readonly string[]): Iterable<[name: string, body: string]> {
  const template = JSON.stringify(withValue(message, path, PLACE))
  const quoted = JSON.stringify(PLACE)
  for (const [name, json] of VALUES) yield [name, template.replace(quoted, () => json)]
  yield ['missing', JSON.stringify(withValue(message, path, undefined))]
  const key = JSON.stringify(path.at(-1))
  yield ['twice', template.replace(`${key}:${quoted}`, () => `${key}:1,${key}:{}`)]
}

/** What is wrong whatever a server may think of it. */
function wantOf([first, ...rest]: readonly string[], name: string): Text['want'] {
  if (rest.length > 0) return 'any'
  if (name === 'twice') return 'refused'
  if (first === 'jsonrpc') return 'refused'
  return 'any'
}

/** Paths of all members down to a depth. */
function pathsOf(value: unknown, before: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null || before.length === LEVELS) return []
  return Object.entries(value).flatMap(([key, inner]) => [[...before, key], ...pathsOf(inner, [...before, key])])
}

function withValue(value: unknown, [key, ...rest]: readonly string[], put: unknown): unknown {
  if (key === undefined) return put
  const own = value as Record<string, unknown>
  return { ...own, [key]: withValue(own[key], rest, put) }
}
