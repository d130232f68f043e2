/** Answers in which policies have nothing to change stay those of the server, so that they can pass as it has sent them. */
import t from 'tap'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Policy } from '../../src/mcp/protocol/call.js'
import { callbacks } from '../../src/middle/policy/callbacks.js'
import { type ChoiceOptions, choice } from '../../src/middle/policy/choice/choice.js'
import { KeptResults } from '../../src/middle/policy/cut/kept-results.js'
import { reading } from '../../src/middle/policy/cut/reading.js'
import { Quarantine } from '../../src/middle/policy/quarantine.js'
import { scopes } from '../../src/middle/policy/scopes.js'
import { ToolNames } from '../../src/middle/policy/tool-names.js'
import { callOf, result } from '../support/calls.js'

const memory = unlimited()
const DENY = { deny: ['no_such_*'] }

const choosing = (rules: Partial<ChoiceOptions>) => choice({ server: 'files', memory, ...rules })
const scoped = scopes({
  required: { of: () => [], all: () => ['write'] },
  scopesOf: () => new Set<string>(),
  hides: true,
  listed: new ToolNames({ server: 'files', memory }),
}).policy
const { lists } = reading({
  server: 'files',
  isOn: () => true,
  kept: new KeptResults([], { keep: async () => undefined, part: async () => undefined }),
  memory,
})
const quarantine = new Quarantine({
  name: 'files',
  trustStatus: () => ({ state: 'quarantined', dependsOnTools: false, reason: '', missing: '', remedy: '' }),
  readOnly: ['*'],
}).policy

const TOOLS = { tools: [{ name: 'read', annotations: { readOnlyHint: true } }] }
const RESOURCES = { resources: [{ uri: 'file:///a', name: 'a' }] }

const rows: [name: string, policy: Policy, method: string, answer: object, params?: Record<string, string>][] = [
  ['a choice of tools', choosing({ tools: { ...DENY, override: {} } }), 'tools/list', TOOLS],
  ['a choice of prompts', choosing({ prompts: DENY }), 'prompts/list', { prompts: [{ name: 'greet' }] }],
  ['a choice of resources', choosing({ resources: { deny: ['no-such:*'] } }), 'resources/list', RESOURCES],
  ['a choice, of what is offered', choosing({ prompts: DENY }), 'server/discover', { capabilities: { tools: {} } }],
  ['scopes', scoped, 'tools/list', TOOLS],
  ['scopes, of what is offered', scoped, 'server/discover', { capabilities: { tools: {} } }],
  [
    'a list of callbacks',
    callbacks({ allowed: [], whyNotPublic: async () => undefined }),
    'events/list',
    { events: [] },
  ],
  ['the parts of results', lists, 'server/discover', { capabilities: { resources: {} } }],
  ['the parts of results, after the first page', lists, 'tools/list', { ...TOOLS, nextCursor: '3' }, { cursor: '2' }],
  ['quarantine', quarantine, 'resources/list', RESOURCES],
]

for (const [name, policy, method, answer, params = {}] of rows)
  t.test(`${name} passes an answer with nothing to change`, async (t) => {
    const last = result(answer)
    t.equal(await policy(async () => last)(callOf({ method, params })), last)
  })
