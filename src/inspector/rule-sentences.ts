/**
 * The rules of docs/development/translation.md, each in one sentence that explains a change to viewers. Markdown with code only; `you` is
 * the client.
 */
export const RULE_SENTENCES = {
  'absent-members':
    'Absent members: many clients write `null`, or an empty list for an object, for what they leave out; servers may refuse that, so the bridge leaves it out.',
  'added-envelope':
    'Envelope: each modern request has one in `_meta`, so the bridge adds the revision, name, capabilities and log level that you gave once for the session.',
  'answers-of-clients':
    'Answers: you sent all answers of a round in one retry; the bridge sends the server one answer to each of its requests.',
  'answers-to-input-requests':
    'Answers: you answered a request; the bridge repeats the call to the server with your answers and its state.',
  'audio-content':
    'Audio: clients before 2025-03-26 do not know it, so the bridge embeds it as a resource with the same data.',
  'boolean-schemas':
    'Schemas `true` and `false`: older clients cannot read them, so the bridge writes `{}` and `{"not":{}}`.',
  'cache-hints':
    'Cache lifetime: legacy servers do not declare one, so the bridge adds `ttlMs` 0 and `cacheScope` `private`: do not cache.',
  'completion-context':
    'Completion context: servers before 2025-06-18 do not know `context`, so the bridge leaves it out.',
  'completion-limit': 'Completions: a result may have 100 values at most, so the bridge leaves out the others.',
  'content-form':
    'Content: the server sent it in another form than a list of blocks, so the bridge makes blocks of it; nothing is lost.',
  'cut-results':
    'Long results: the configuration has the bridge cut them, so it keeps what is too long, says in the result how to read on, and adds the tool `read_more` to the list.',
  'emulated-tasks':
    'Tasks: the bridge runs them for the server, so it says in `taskSupport` that each tool can be a task, and names the task in the `_meta` of its result.',
  envelope:
    'Envelope: legacy servers are told name and capabilities of the client once, in `initialize`, so the bridge removes them from each request.',
  'errors-for-legacy-clients':
    'Unknown resource: legacy clients expect the error -32002 with the URI, so the bridge replaces the -32602 of the server.',
  'errors-for-modern-clients':
    'Unknown resource: modern clients expect the error -32602 with the URI, so the bridge rewrites the error of the server.',
  'exact-names':
    'Names and URIs: the bridge sends the exact name that the server has, without needless escapes and without the prefix of a group.',
  'fewer-completions': 'Completions: a result may have 100 values at most, so the bridge leaves out the others.',
  'group-names':
    'Names in a group: the bridge adds the prefix of the server to URIs, task ids, loggers and cursors for you, and removes it for the server.',
  'header-annotations': 'Header annotation: this `x-mcp-header` is invalid, so the bridge removes it; the tool stays.',
  ids: 'Request ids: the bridge sends its own to the server and restores yours.',
  initialize:
    'Handshake: the bridge answers `initialize` with your revision, and with what the server says about itself in `server/discover`.',
  'input-requests-of-servers':
    'Question: the legacy server sent a request to you, or the bridge has a person approve the call first; modern clients get it in the result, as `input_required`, and the call waits.',
  'input-schema-root':
    'Input schema: its root lacks `"type":"object"`, which modern clients require, so the bridge adds it.',
  'input-schema-type': 'Input schema: it lacks `"type":"object"`, which clients require, so the bridge adds it.',
  'invalid-items':
    'Invalid item: it lacks a required member, such as a name, so the bridge removes it; the other items stay.',
  'invalid-members':
    'Invalid member: an optional member is `null`, of the wrong type or malformed, so the bridge removes it.',
  'log-level':
    'Log level: legacy servers are told it in `logging/setLevel`, so the bridge removes it here and filters the messages for each call.',
  'misannotated-tools':
    'Invalid tool: its `x-mcp-header` is invalid, so it could not be called, and the bridge removes it.',
  'modern-members':
    'Modern members: legacy clients do not know `resultType`, `ttlMs`, `cacheScope` and the protocol keys of `_meta`, so the bridge removes them.',
  'null-cursor': 'Cursor: `nextCursor` is `null`, which modern clients do not accept, so the bridge removes it.',
  'output-schema-root':
    'Output schema: these clients accept only objects, so the bridge puts it into an object with the property `result`, or removes it if that is not possible.',
  'output-schemas':
    'Output schema: this client cannot use it and would reject the whole list, so the bridge removes it.',
  'progress-message': 'Progress message: clients of 2024-11-05 do not know `message`, so the bridge removes it.',
  'progress-tokens': 'Progress tokens: the bridge sends its own to the server and restores yours.',
  'protocol-keys':
    'Protocol keys: in results for modern clients, the bridge sets those of `_meta` itself, so it removes those of the server; all others stay.',
  'requests-for-input':
    'Question: the modern server asks in its result, with `input_required`, or the bridge has a person approve the call first; legacy clients get a request for each question.',
  'resource-links': 'Resource link: clients before 2025-06-18 do not know it, so the bridge writes it as text.',
  'result-type':
    'Result type: each modern result says what it is and who made it, so the bridge adds `resultType` and the identity of the server.',
  retries:
    'Retry: your answers are in `inputResponses`; the bridge sends them to the server, where the call is still open.',
  'rewritten-tools':
    'Tools: the bridge lists this one as the configuration says, or under a name in its group, and calls it with the name and arguments that the server knows.',
  'schema-dialect':
    'Schema dialect: the schema uses nothing of 2020-12, so the bridge removes `$schema`: some clients reject tools that have it.',
  'structured-content':
    'Structured content: clients before 2025-06-18 do not know it, so the bridge removes it, and writes it as text if there is no content.',
  'structured-content-values':
    'Structured content: these clients accept only objects, so the bridge puts the value into the member `result` of one.',
  'subscription-ids':
    'Subscription: the bridge subscribes at the server once for all clients, and marks what you get with the id of your subscription.',
  subscriptions:
    'Subscriptions: modern servers have one for everything, so the bridge replaces it with a new `subscriptions/listen` whenever yours change.',
  'task-param': 'Task: the bridge decides whether the server runs the call as a task, so it removes your `task`.',
  'tasks-of-servers':
    'Task: the tool of the server runs as a task, so the bridge starts one, and you get the task or its result.',
  'tool-execution': 'Execution: modern tools have no member `execution`, so the bridge removes it.',
  'tool-result-content':
    'Tool result: it has no `content`, which clients require, so the bridge adds it; other members of old servers become text.',
  'trace-context': 'Trace context: the bridge passes yours on; with tracing, it sends that of its own span.',
  'unknown-content':
    'Content of an unknown type: this client could not read it, so the bridge writes its JSON as text.',
  'unusable-tools':
    'Hidden: the configuration hides this from you, or its server is not trusted or not available, so the bridge removes or marks it.',
} as const
