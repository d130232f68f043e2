/**
 * Repairs content of a server that is not a list of blocks: a text, a block outside a list, a block without a type.
 * Clients reject or ignore such content.
 */
import { cut } from '../../base/rpc/source.js'
import {
  arrayIn,
  EMPTY,
  edit,
  type Json,
  keys,
  type List,
  listIn,
  mapElements,
  objectIn,
  opens,
  type Payload,
  parseObject,
  raw,
  write,
} from '../../base/rpc/splice.js'

/** Members of a tool result that are not its content. */
const NO_CONTENT = ['content', 'structuredContent', 'isError', '_meta', 'resultType']
/** How blocks of the official SDKs begin: they certainly have a type. */
const TYPED = '{"type":"'

/** A block that shows this text. */
export function textBlock(text: string): Payload {
  return quotedBlock(JSON.stringify(text))
}

/** A block that shows the text of this JSON string. */
function quotedBlock(text: Json): Payload {
  return edit(EMPTY, { type: '"text"', text })
}

/** A block; with the type `text` if it has a text but no type. */
export function typedBlock(block: Payload): Payload {
  return opens(block, 'text') === '"' && opens(block, 'type') !== '"' ? edit(block, { type: '"text"' }) : block
}

/** An object in the place of a block: without a type, it becomes its JSON as text. */
function asBlock(object: Payload): Payload {
  const block = typedBlock(object)
  return opens(block, 'type') === '"' ? block : textBlock(write(object))
}

/** The blocks for a value that is not an object: null becomes none, another value becomes text. */
export function otherBlock(json: Json): readonly Payload[] {
  if (json === 'null') return []
  return [json.startsWith('"') ? quotedBlock(json) : textBlock(json)]
}

function listOf(json: Json): Json {
  const blocks = json.startsWith('{') ? [asBlock(parseObject(json))] : otherBlock(json)
  return `[${blocks.map(write).join(',')}]`
}

/**
 * The result of a tool with a list as its content. If it has neither content nor structured content, its other members
 * become text, such as `toolResult` of 2024-10-07.
 */
export function withContentList(result: Payload): Payload {
  const content = raw(result, 'content') ?? 'null'
  if (content !== 'null') return edit(result, { content: listOf(content) })
  const toolResult = raw(result, 'toolResult')
  if (toolResult !== undefined) return edit(result, { content: listOf(toolResult), toolResult: undefined })
  const hasOthers =
    (opens(result, 'structuredContent') ?? 'n') === 'n' && keys(result).some((key) => !NO_CONTENT.includes(key))
  const others = edit(result, Object.fromEntries(NO_CONTENT.map((key) => [key, undefined])))
  return edit(result, { content: hasOthers ? listOf(JSON.stringify(write(others))) : '[]' })
}

/** The result of a tool with a list of blocks as its content. */
export function withBlocks(result: Payload): Payload {
  if (isTyped(listIn(result, 'content'))) return result
  const listed = opens(result, 'content') === '[' ? result : withContentList(result)
  const content = mapElements(listed, 'content', asBlock, otherBlock)
  return content ? edit(listed, { content }) : listed
}

/** Whether this is a list of blocks that all have a type, at a glance. */
function isTyped(list: List | undefined): boolean {
  if (!list) return false
  for (const { start } of list.elements) if (!list.source.text.startsWith(TYPED, start)) return false
  return true
}

/** The holder; if it has an object under `key`, with a list of that object instead. */
export function withList(holder: Payload, key: string): Payload {
  const only = objectIn(holder, key)
  return only ? edit(holder, { [key]: `[${write(only)}]` }) : holder
}

/** The result of a prompt with one block in each message: a message with several blocks becomes several messages. */
export function withMessageBlocks(result: Payload): Payload {
  const listed = withList(result, 'messages')
  const messages = mapElements(listed, 'messages', messagesOf)
  return messages ? edit(listed, { messages }) : listed
}

function messagesOf(message: Payload): Payload | readonly Payload[] {
  const block = objectIn(message, 'content')
  if (block) {
    const typed = asBlock(block)
    return typed === block ? message : edit(message, { content: typed })
  }
  const blocks = (raw(message, 'content') ?? 'null') === 'null' ? undefined : arrayIn(withBlocks(message), 'content')
  return blocks?.elements.map(({ start, end }) => edit(message, { content: cut(blocks.source, start, end) })) ?? message
}
