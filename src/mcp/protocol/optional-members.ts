/** The members of clients' messages that may be absent, by the schemas of all revisions: in requests, notifications and answers. */
import { CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN } from './meta.js'
import { LISTS } from './methods.js'

/** What may be absent in an object, by names of its members. */
export interface OptionalMembers {
  /** Null is absent. */
  values?: readonly string[]
  /** Objects: an empty list is absent, too. */
  objects?: readonly string[]
  /** Objects whose presence declares something: null is absent, and an empty list is an empty object. */
  declared?: readonly string[]
  /** What may be absent in objects under it, and in each object of a list. */
  inside?: Readonly<Record<string, OptionalMembers>>
  each?: Readonly<Record<string, OptionalMembers>>
  /** Its members have any names: what each of them is. `answers`: an answer to a question of a server. */
  all?: 'values' | 'declared' | 'answers'
}

/** No value of it may be null. */
const NOT_NULL: OptionalMembers = { all: 'values' }
const NAMED_OBJECTS: OptionalMembers = { all: 'declared' }
const ICONS = { icons: { values: ['mimeType', 'sizes', 'theme'] } }
const OF_CLIENT_INFO: OptionalMembers = { values: ['title', 'description', 'websiteUrl', 'icons'], each: ICONS }
const OF_CAPABILITIES: OptionalMembers = {
  declared: ['experimental', 'roots', 'sampling', 'elicitation', 'tasks', 'extensions'],
  inside: {
    experimental: NAMED_OBJECTS,
    extensions: NAMED_OBJECTS,
    roots: { values: ['listChanged'] },
    sampling: { declared: ['context', 'tools'] },
    elicitation: { declared: ['form', 'url'] },
    tasks: {
      declared: ['list', 'cancel', 'requests'],
      inside: {
        requests: {
          declared: ['elicitation', 'sampling'],
          inside: { elicitation: { declared: ['create'] }, sampling: { declared: ['createMessage'] } },
        },
      },
    },
  },
}

/** In each params. */
export const OF_PARAMS: OptionalMembers = {
  objects: ['_meta'],
  inside: {
    _meta: {
      values: [PROGRESS_TOKEN, LOG_LEVEL],
      objects: [CLIENT_INFO],
      inside: { [CLIENT_INFO]: OF_CLIENT_INFO },
    },
  },
}

const ANNOTATIONS: OptionalMembers = { values: ['audience', 'priority', 'lastModified'] }
/** A block of content; and one within the result of a tool. */
const OF_INNER_BLOCK: OptionalMembers = {
  values: ['title', 'description', 'mimeType', 'size', 'icons'],
  objects: ['_meta', 'annotations'],
  inside: { annotations: ANNOTATIONS, resource: { values: ['mimeType'], objects: ['_meta'] } },
  each: ICONS,
}
const OF_BLOCK: OptionalMembers = {
  ...OF_INNER_BLOCK,
  values: [...(OF_INNER_BLOCK.values ?? []), 'isError', 'structuredContent'],
  each: { ...ICONS, content: OF_INNER_BLOCK },
}
const OF_TASK: OptionalMembers = { values: ['pollInterval', 'statusMessage'] }

/** In an answer to a question of a server, or about a task. Of a person's form no value may be null. */
export const OF_ANSWER: OptionalMembers = {
  values: ['content', 'stopReason', 'nextCursor', ...(OF_TASK.values ?? [])],
  objects: ['_meta'],
  inside: { content: OF_BLOCK, task: OF_TASK },
  each: { content: OF_BLOCK, roots: { values: ['name'], objects: ['_meta'] }, tasks: OF_TASK },
}
export const OF_PERSON: OptionalMembers = { objects: ['content', '_meta'], inside: { content: NOT_NULL } }

const CURSOR: OptionalMembers = { values: ['cursor'] }
/** With a call that is sent again, a modern client answers questions. An answer, or a state, that is null is none: it is refused. */
const RETRY: OptionalMembers = { inside: { inputResponses: { all: 'answers' } } }

/** In the params of each method, beside those of all. */
export const OF_METHODS: Readonly<Record<string, OptionalMembers>> = {
  ...Object.fromEntries([...LISTS.keys(), 'tasks/list', 'skills/list'].map((method) => [method, CURSOR])),
  'resources/directory/read': CURSOR,
  initialize: { inside: { clientInfo: OF_CLIENT_INFO, capabilities: OF_CAPABILITIES } },
  // What a tool gets is its own matter.
  'tools/call': {
    ...RETRY,
    objects: ['arguments', 'task'],
    inside: { ...RETRY.inside, task: { values: ['ttl'] } },
  },
  'prompts/get': {
    ...RETRY,
    objects: ['arguments'],
    inside: { ...RETRY.inside, arguments: NOT_NULL },
  },
  'resources/read': RETRY,
  'completion/complete': {
    objects: ['context'],
    inside: {
      ref: { values: ['title'] },
      context: { objects: ['arguments'], inside: { arguments: NOT_NULL } },
    },
  },
  'subscriptions/listen': {
    inside: {
      notifications: {
        values: ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged', 'resourceSubscriptions', 'taskIds'],
      },
    },
  },
  'tasks/update': { inside: { inputResponses: { all: 'answers' } } },
  'notifications/cancelled': { values: ['reason', 'requestId'] },
  'notifications/progress': { values: ['total', 'message'] },
  'notifications/tasks/status': OF_TASK,
}
