/** How far a server is trusted, fact by fact, and what follows for a server that runs. */
import { join } from 'node:path'
import t from 'tap'
import type { ToolList } from '../../src/mcp/ports/trust-status.js'
import type { ManifestServer } from '../../src/services/discovery/manifest.js'
import { type Facts, judge, type TrustVerdict } from '../../src/services/discovery/trust/judge.js'
import { verifyManifest } from '../../src/services/discovery/trust/jws.js'
import {
  type Approval,
  keptListOf,
  type SeenTools,
  type Trust,
  TrustStore,
} from '../../src/services/discovery/trust/store.js'
import { trustStatusOf } from '../../src/services/discovery/trust/trust-status.js'
import { temporaryFolder } from '../support/folder.js'
import { bytesOf, DAY, DELETE_ALL, ENDPOINT, listOf, manifestOf, NOW, publisherWith, READ } from '../support/trust.js'

const acme = await publisherWith('ed25519')
const [PIN, BACKUP] = [`${'A'.repeat(43)}=`, `${'B'.repeat(42)}A=`]
const ORIGIN = 'https://mcp.acme.example'
const TOOLS = listOf(READ, DELETE_ALL)
const MORE = listOf(READ, DELETE_ALL, { name: 'exfiltrate' })
const KEY = `key acme.example ${acme.key.id}`
const HANDSHAKE = { name: 'weather', version: '1.2.0', revision: '2026-07-28', capabilities: ['tools'] }

interface Said {
  keys?: string[]
  pins?: string[]
  approval?: Partial<Approval>
  seen?: Partial<SeenTools>
  refusal?: string
}

function trust({ keys = [acme.key.id], pins, approval, seen, refusal }: Said = {}): Trust {
  const looked = { endpoint: ENDPOINT, bound: 'none', list: keptListOf(TOOLS), since: NOW - DAY }
  const given = approval && { ...looked, name: 'weather', tools: ['*'], until: NOW + DAY, ...approval }
  return {
    refusal,
    keysOf: (publisher) => (publisher === 'acme.example' ? keys.map((id) => ({ ...acme.key, id })) : []),
    lastOf: () => undefined,
    pinsOf: (origin) => (origin === ORIGIN ? pins : undefined),
    approvalOf: (endpoint) => (given?.endpoint === endpoint ? given : undefined),
    seenOf: () => seen && { ...looked, bound: KEY, ...seen },
  }
}

/** A manifest as it was verified, and the server in it. */
async function manifest(changes: object = {}, server: object = {}, how: 'signed' | 'unsigned' | 'wrong' = 'signed') {
  const bytes = bytesOf(manifestOf(changes, server))
  const jws = how === 'unsigned' ? undefined : await acme.sign(how === 'wrong' ? bytesOf('{}') : bytes)
  const keysOf = (publisher: string) => (publisher === 'acme.example' ? [acme.key] : [])
  const verification = await verifyManifest({ bytes, jws, keysOf, lastOf: () => undefined, now: NOW })
  return { verification, server: verification.manifest?.servers[0] }
}

const signed = await manifest()
const unsigned = await manifest({}, {}, 'unsigned')
const runtime = await manifest({}, { tools: 'runtime' })
const facts = (changes: Partial<Facts> = {}): Facts => ({
  ...{ name: 'weather', kind: 'http', endpoint: ENDPOINT, origin: ORIGIN, configured: false, tools: TOOLS },
  ...changes,
})
const pinned = (changes: object = {}) => ({ pin: { pins: [PIN, BACKUP], matched: true, ...changes } })

type Expected = Partial<Omit<TrustVerdict, 'reason'>> & { reason?: RegExp }
const approve = `mcp-bridge trust approve ${ENDPOINT}`

const cases: [name: string, facts: Facts, trust: Trust, expected: Expected][] = [
  [
    'what the operator has configured',
    facts({ configured: true, kind: 'stdio' }),
    trust(),
    { state: 'trusted', by: 'configuration', dependsOnTools: false },
  ],
  [
    'what the operator has configured, with a store that is damaged',
    facts({ configured: true }),
    trust({ refusal: 'damaged' }),
    { state: 'trusted' },
  ],
  [
    'what the operator has configured, with another key than the pinned one',
    facts({ configured: true, ...pinned({ matched: false }) }),
    trust({ pins: [PIN] }),
    { state: 'refused', reason: /another key/ },
  ],
  [
    'a program that was found somewhere',
    facts({ kind: 'stdio' }),
    trust(),
    { state: 'refused', reason: /program/, remedy: '' },
  ],
  ['a program that is approved', facts({ kind: 'stdio' }), trust({ approval: {} }), { state: 'refused' }],
  ['a program in a signed manifest', facts({ kind: 'stdio', manifest: signed }), trust(), { state: 'refused' }],
  [
    'an address of which nothing is known',
    facts(),
    trust(),
    { state: 'quarantined', reason: /^no signature, pin or approval vouches for it$/, remedy: approve },
  ],
  [
    'a manifest without a signature',
    facts({ manifest: unsigned }),
    trust(),
    { state: 'quarantined', reason: /not signed/, remedy: approve },
  ],
  [
    'a signed manifest',
    facts({ manifest: signed, handshake: HANDSHAKE }),
    trust(),
    { state: 'trusted', by: 'signature', dependsOnTools: true, unseen: true, bound: KEY },
  ],
  [
    'a signed manifest, tools not known yet',
    facts({ manifest: signed, tools: undefined }),
    trust(),
    { state: 'quarantined', reason: /not been listed yet/, dependsOnTools: true },
  ],
  [
    'a signed manifest, tools as they were first seen',
    facts({ manifest: signed }),
    trust({ seen: {} }),
    { state: 'trusted', unseen: false },
  ],
  [
    'a signed manifest, tools others than first seen',
    facts({ manifest: runtime, tools: MORE }),
    trust({ seen: {} }),
    {
      state: 'quarantined',
      reason: /first seen on 2026-10-20: added "exfiltrate"/,
      remedy: approve,
      broken: { endpoint: ENDPOINT, since: NOW - DAY } as Approval,
    },
  ],
  [
    'a signed manifest, tools that were others once',
    facts({ manifest: signed }),
    trust({ seen: { withdrawn: 'they were others' } }),
    { state: 'quarantined', reason: /they were others/, broken: undefined },
  ],
  [
    'tools that were first seen under another key',
    facts({ manifest: runtime, tools: MORE }),
    trust({ seen: { bound: 'key acme.example x' } }),
    { state: 'trusted', unseen: true },
  ],
  [
    'a signed manifest, with a key that has been taken away',
    facts({ manifest: signed }),
    trust({ keys: [] }),
    { state: 'quarantined', reason: /no longer a key of acme.example/ },
  ],
  [
    'a signed manifest of another address',
    facts({ manifest: signed, endpoint: 'https://evil.example/mcp' }),
    trust(),
    { state: 'quarantined', reason: /does not cover this address/ },
  ],
  [
    'a signed manifest, with a server that is not in it',
    facts({ manifest: { ...signed, server: { ...(signed.server as ManifestServer) } } }),
    trust(),
    { state: 'quarantined', reason: /does not cover this address/ },
  ],
  [
    'a signed manifest, and nobody knows which server of it',
    facts({ manifest: { ...signed, server: undefined } }),
    trust(),
    { state: 'quarantined' },
  ],
  [
    'a manifest with a wrong signature',
    facts({ manifest: await manifest({}, {}, 'wrong') }),
    trust(),
    { state: 'quarantined', reason: /does not match its content/ },
  ],
  [
    'a manifest with a wrong signature, pinned and approved',
    facts({ manifest: await manifest({}, {}, 'wrong'), ...pinned() }),
    trust({ pins: [PIN, BACKUP], approval: {} }),
    { state: 'quarantined', reason: /cannot be trusted/ },
  ],
  [
    'the manifest of a publisher that nobody knows',
    facts({ manifest: await manifest({ publisher: 'evil.example' }) }),
    trust(),
    { state: 'quarantined', reason: /no key of evil.example/ },
  ],
  [
    'a store that is damaged',
    facts({ manifest: signed }),
    trust({ refusal: 'The trust store /x is not used: damaged' }),
    { state: 'quarantined', reason: /damaged/, remedy: '' },
  ],

  [
    'another name in the handshake',
    facts({ manifest: signed, handshake: { ...HANDSHAKE, name: 'evil' } }),
    trust(),
    { state: 'quarantined', reason: /its name is "evil" and not "weather"/ },
  ],
  [
    'another version in the handshake',
    facts({ manifest: signed, handshake: { ...HANDSHAKE, version: '6.6.6' } }),
    trust(),
    { state: 'quarantined', reason: /version/ },
  ],
  [
    'a revision that is not in the manifest',
    facts({ manifest: signed, handshake: { ...HANDSHAKE, revision: '2024-11-05' } }),
    trust(),
    { state: 'quarantined', reason: /revision/ },
  ],
  [
    'more capabilities than in the manifest',
    facts({ manifest: signed, handshake: { ...HANDSHAKE, capabilities: ['prompts', 'tools'] } }),
    trust(),
    { state: 'quarantined', reason: /list of capabilities/ },
  ],
  [
    'fewer capabilities than in the manifest',
    facts({ manifest: signed, handshake: { ...HANDSHAKE, capabilities: [] } }),
    trust(),
    { state: 'quarantined', reason: /list of capabilities/ },
  ],
  [
    'a handshake that disagrees, approved',
    facts({ manifest: unsigned, handshake: { ...HANDSHAKE, version: '2' } }),
    trust({ approval: {} }),
    { state: 'quarantined', reason: /version/ },
  ],
  [
    'a name that is said to be another in the handshake',
    facts({ manifest: await manifest({}, { serverName: 'Weather!' }), handshake: { ...HANDSHAKE, name: 'Weather!' } }),
    trust(),
    { state: 'trusted' },
  ],
  [
    'capabilities of which the manifest says nothing',
    facts({
      manifest: await manifest({}, { capabilities: undefined }),
      handshake: { ...HANDSHAKE, capabilities: ['x'] },
    }),
    trust(),
    { state: 'trusted' },
  ],
  [
    'a tool that is not in the manifest',
    facts({ manifest: signed, tools: MORE }),
    trust(),
    { state: 'quarantined', reason: /does not list: "exfiltrate"/ },
  ],
  ['a tool less than in the manifest', facts({ manifest: signed, tools: listOf(READ) }), trust(), { state: 'trusted' }],
  [
    'a hint that is not the one in the manifest',
    facts({ manifest: signed, tools: listOf({ ...READ, annotations: { readOnlyHint: false } }) }),
    trust(),
    { state: 'quarantined', reason: /"read" has another readOnlyHint/ },
  ],
  [
    'a hint that is left out',
    facts({ manifest: signed, tools: listOf({ ...READ, annotations: {} }) }),
    trust(),
    { state: 'quarantined', reason: /readOnlyHint/ },
  ],
  [
    'hints of which the manifest says nothing',
    facts({ manifest: signed, tools: listOf({ ...DELETE_ALL, annotations: { readOnlyHint: true } }) }),
    trust(),
    { state: 'trusted' },
  ],

  [
    'a pinned key',
    facts(pinned()),
    trust({ pins: [PIN, BACKUP] }),
    { state: 'trusted', by: 'pin', dependsOnTools: true, bound: `pins ${PIN} ${BACKUP}` },
  ],
  ['a pinned key, in another order', facts(pinned()), trust({ pins: [BACKUP, PIN] }), { state: 'trusted' }],
  [
    'another key than the pinned one',
    facts(pinned({ matched: false })),
    trust({ pins: [PIN, BACKUP] }),
    { state: 'refused', remedy: `mcp-bridge trust pin ${ORIGIN}` },
  ],
  [
    'another key than the pinned one, signed and approved',
    facts({ ...pinned({ matched: false }), manifest: signed }),
    trust({ pins: [PIN, BACKUP], approval: {} }),
    { state: 'refused' },
  ],
  [
    'a pinned origin that has not been connected to',
    facts(),
    trust({ pins: [PIN] }),
    { state: 'quarantined', reason: /not been connected to/ },
  ],
  [
    'a pinned origin, with a signed manifest, not connected to',
    facts({ manifest: signed }),
    trust({ pins: [PIN] }),
    { state: 'quarantined' },
  ],
  [
    'connections under pins that have been replaced',
    facts(pinned()),
    trust({ pins: [BACKUP] }),
    { state: 'quarantined', reason: /pins of its origin have changed/ },
  ],
  [
    'connections under pins that have been taken away',
    facts(pinned()),
    trust(),
    { state: 'quarantined', reason: /approval vouches/ },
  ],
  [
    'a pin of another origin',
    facts({ ...pinned(), origin: 'https://mcp.acme.example:8443' }),
    trust({ pins: [PIN, BACKUP] }),
    { state: 'quarantined' },
  ],

  [
    'an approval of the whole server',
    facts(),
    trust({ approval: {} }),
    { state: 'trusted', by: 'approval', only: undefined, dependsOnTools: true },
  ],
  [
    'an approval of some tools',
    facts(),
    trust({ approval: { tools: ['read*'] } }),
    { state: 'trusted', only: ['read*'] },
  ],
  [
    'an approval, tools not known yet',
    facts({ tools: undefined }),
    trust({ approval: {} }),
    { state: 'quarantined', dependsOnTools: true },
  ],
  [
    'an approval of another endpoint',
    facts(),
    trust({ approval: { endpoint: 'https://other.example/mcp' } }),
    { state: 'quarantined', reason: /approval vouches/ },
  ],
  [
    'an approval that has run out',
    facts(),
    trust({ approval: { until: NOW } }),
    { state: 'quarantined', reason: /expired on/, remedy: approve },
  ],
  [
    'an approval of the future',
    facts(),
    trust({ approval: { since: NOW + DAY } }),
    { state: 'quarantined', reason: /future/ },
  ],
  [
    'an approval of other tools',
    facts({ tools: MORE }),
    trust({ approval: {} }),
    { state: 'quarantined', reason: /approved on 2026-10-20: added "exfiltrate"/, broken: {} as Approval },
  ],
  [
    'an approval that was withdrawn',
    facts(),
    trust({ approval: { withdrawn: 'its tools were others' } }),
    { state: 'quarantined', reason: /were others/ },
  ],
  [
    'an approval under a key, and now there is none',
    facts(),
    trust({ approval: { bound: KEY } }),
    { state: 'quarantined', reason: /another key, or with none/ },
  ],
  [
    'an approval under pins that have been replaced',
    facts({ pin: { pins: [BACKUP], matched: true } }),
    trust({
      pins: [BACKUP],
      approval: { bound: `pins ${PIN}` },
      seen: { bound: `pins ${BACKUP}`, list: keptListOf(MORE) },
    }),
    { state: 'quarantined' },
  ],
  [
    'a signature, tools that have changed and have been approved',
    facts({ manifest: runtime, tools: MORE }),
    trust({ seen: {}, approval: { bound: KEY, list: keptListOf(MORE) } }),
    { state: 'trusted', by: 'approval' },
  ],
  [
    'a signature, and an approval that has run out',
    facts({ manifest: signed }),
    trust({ seen: {}, approval: { bound: KEY, until: NOW } }),
    { state: 'trusted', by: 'signature' },
  ],
]
for (const [name, given, store, expected] of cases)
  t.test(`${name}: ${expected.state}${expected.by ? ` by ${expected.by}` : ''}`, async (t) => {
    const verdict = judge(given, store, NOW)
    t.match(verdict, expected)
    if (expected.remedy === '') t.equal(verdict.remedy, '')
    if ('only' in expected && expected.only === undefined) t.equal(verdict.only, undefined)
    if (verdict.state !== 'trusted') t.not(verdict.missing, '')
  })

t.test('a manifest that was valid when fetched expires when it says so', async (t) => {
  t.equal(judge(facts({ manifest: signed }), trust(), NOW + DAY + 60_000).state, 'trusted')
  t.match(judge(facts({ manifest: signed }), trust(), NOW + DAY + 60_001), {
    state: 'quarantined',
    reason: /expired on/,
  })
})

t.test('describes changes in words, whatever the tools are called', async (t) => {
  const wicked = { name: '\u001b[2J\u202e' }
  const others = [...'abcdef'].map((name) => ({ name }))
  const reason = (tools: ToolList) => judge(facts({ tools }), trust({ approval: {} }), NOW).reason
  t.match(reason(listOf(READ, { ...DELETE_ALL, description: 'Harmless' })), /: changed "delete_all"$/)
  t.match(reason(listOf(READ)), /: gone "delete_all"$/)
  t.match(reason(listOf(READ, DELETE_ALL, wicked)), /: added "\?\[2J\?"$/)
  t.match(reason(listOf(...others)), /added "a", "b", "c", "d", "e" and 1 more; gone "read", "delete_all"$/)
})

t.test('a list that was requested before an approval does not count', async (t) => {
  for (const manifestOf of [undefined, runtime]) {
    const store = new TrustStore({ path: join(temporaryFolder(t), 'trust.json'), now: () => NOW })
    if (manifestOf) await store.addKey('acme.example', acme.key)
    const trustStatus = trustStatusOf({ store, facts: () => facts({ manifest: manifestOf }), now: () => NOW })
    const bound = manifestOf ? KEY : 'none'
    if (manifestOf) t.match(trustStatus({ ...TOOLS, at: NOW - 2 }), { state: 'trusted' }, 'first seen')
    await store.approve({ endpoint: ENDPOINT, name: 'weather', tools: ['*'], bound, list: MORE, until: NOW + DAY })
    t.match(
      trustStatus({ ...TOOLS, at: NOW - 1 }),
      { state: 'quarantined', dependsOnTools: true, reason: 'its tools have not been listed since they were approved' },
      'it has to be listed anew',
    )
    t.match(trustStatus({ ...MORE, at: NOW - 1 }), { state: 'quarantined', dependsOnTools: true }, 'also an equal one')
    t.match(trustStatus({ ...MORE, at: NOW }), { state: 'trusted' }, 'nothing was withdrawn')
    t.equal(store.approvalOf(ENDPOINT)?.withdrawn, undefined)
    t.match(trustStatus({ ...TOOLS, at: NOW }), { state: 'quarantined', dependsOnTools: false }, 'it has changed since')
    t.match(trustStatus({ ...MORE, at: NOW }), { state: 'quarantined' }, 'which counts')
  }
})

t.test('quotes a name that a shell would split', async (t) => {
  const { remedy } = judge(facts({ name: "x'; rm -rf $HOME", endpoint: `${ENDPOINT}?key=secret` }), trust(), NOW)
  t.equal(remedy, `mcp-bridge trust approve 'x'\\''; rm -rf $HOME'`)
})

t.test('judges a running server again', async (t) => {
  const store = new TrustStore({ path: join(temporaryFolder(t), 'trust.json'), now: () => NOW })
  const told: string[] = []
  const trustStatus = trustStatusOf({
    store,
    facts: () => ({ ...facts({ manifest: runtime }) }),
    changed: ({ state, by }) => told.push(`${state} ${by}`),
    now: () => NOW,
  })
  const written = async () => {
    // What is noted is written at the side; a change of ours waits for the same lock.
    await store.unpin('https://nobody.example')
    return new TrustStore({ path: store.path }).seenOf(ENDPOINT)
  }

  await t.test('it is in quarantine while its publisher is unknown', async (t) => {
    const stranger = await manifest({ publisher: 'evil.example' })
    t.equal(judge(facts({ manifest: stranger }), store, NOW).state, 'quarantined')
  })
  await t.test('it is trusted for its key, and its tools are recorded', async (t) => {
    await store.addKey('acme.example', acme.key)
    t.match(trustStatus(undefined), { state: 'quarantined', dependsOnTools: true })
    t.match(trustStatus(TOOLS), { state: 'trusted', reason: /signed by acme.example/ })
    t.match(await written(), { list: { digest: TOOLS.digest } })
  })
  await t.test('it is in quarantine once it offers other tools, even after it has withdrawn them', async (t) => {
    t.match(trustStatus(MORE), { state: 'quarantined', reason: /added "exfiltrate"/ })
    t.match(trustStatus(TOOLS), { state: 'quarantined', reason: /added "exfiltrate"/ })
    t.match(await written(), { withdrawn: /added "exfiltrate"/ })
  })
  await t.test('it is trusted again after an approval, and only with the approved tools', async (t) => {
    const bound = KEY
    const [name, until] = ['weather', NOW + DAY]
    const later = new TrustStore({ path: store.path, now: () => NOW + 1 })
    await later.approve({ endpoint: ENDPOINT, name, tools: ['*'], bound, list: MORE, until })
    t.match(trustStatus(MORE), { state: 'trusted', reason: /signed/ })
    t.equal(trustStatus(TOOLS).state, 'quarantined')
    t.equal(trustStatus(MORE).state, 'quarantined')
  })
  t.same(told, [
    'quarantined undefined',
    'trusted signature',
    'quarantined undefined',
    'trusted signature',
    'quarantined undefined',
  ])
})
