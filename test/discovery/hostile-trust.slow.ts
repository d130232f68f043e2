/**
 * Those who want to be trusted and are not to be. Each case is tried on a bridge that trusts somebody: a trap stands for the
 * server, and the call that acts never reaches it.
 */
import { createHmac, generateKeyPairSync, type KeyObject, sign as signRaw } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { canonical, httpEndpoint } from '../../src/config/endpoint.js'
import { Quarantine } from '../../src/middle/policy/quarantine.js'
import type { Facts, TrustVerdict } from '../../src/services/discovery/trust/judge.js'
import type { Verification } from '../../src/services/discovery/trust/jws.js'
import { pinnedConnector } from '../../src/services/discovery/trust/pin.js'
import { TrustStore } from '../../src/services/discovery/trust/store.js'
import { trustStatusOf } from '../../src/services/discovery/trust/trust-status.js'
import { callOf, outcomeOf, Played, result, toolCall } from '../support/calls.js'
import { temporaryFolder } from '../support/folder.js'
import { makeCa, makeKeys, type ServerOptions, serveTls } from '../support/tls.js'
import { bytesOf, DAY, DELETE_ALL, ENDPOINT, listOf, manifestOf, NOW, publisherWith, READ } from '../support/trust.js'

const MANIFEST = 'https://acme.example/.well-known/mcp.json'
const ORIGIN = 'https://mcp.acme.example'
const acme = await publisherWith('ed25519')
const acmeEc = await publisherWith('p256')
const rival = await publisherWith('ed25519')
const stranger = await publisherWith('ed25519')
const strangerEc = await publisherWith('p256')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

let tried = 0

/** A bridge that knows the keys of two publishers, and a server that is none of its business. */
async function bridge(t: Test) {
  const state = { now: NOW, tools: [READ, DELETE_ALL] as object[] }
  const store = new TrustStore({ path: join(temporaryFolder(t), 'trust.json'), now: () => state.now })
  await store.addKey('acme.example', acme.key)
  await store.addKey('acme.example', acmeEc.key)
  await store.addKey('rival.example', rival.key)
  let known: Partial<Facts> = {}
  let verdict: TrustVerdict | undefined
  const quarantine = new Quarantine({
    name: 'weather',
    readOnly: [],
    // Everything is looked at again before each call.
    now: () => Number.POSITIVE_INFINITY,
    trustStatus: trustStatusOf({
      store,
      facts: () => ({ name: 'weather', kind: 'http', endpoint: ENDPOINT, origin: ORIGIN, configured: false, ...known }),
      changed: (now) => {
        verdict = now
      },
      now: () => state.now,
    }),
  })
  const trap = new Played(({ method }) => result(method === 'tools/list' ? { tools: state.tools } : { content: [] }))
  return {
    store,
    state,
    trap,
    /** What has been found out of the server, from now on. */
    learn(facts: Partial<Facts>) {
      known = { ...known, ...facts }
    },
    /** Fetches a manifest, as the bridge does it. */
    async fetch(bytes: Uint8Array, jws: Uint8Array | undefined): Promise<Verification> {
      const verification = await store.verify({ url: MANIFEST, bytes, jws })
      known = { ...known, manifest: { verification, server: verification.manifest?.servers[0] } }
      return verification
    },
    /** Whether somebody who calls gets through. */
    async reaches(): Promise<boolean> {
      const before = trap.called.length
      await outcomeOf(quarantine.policy, trap.handle, toolCall('delete_all'))
      for (const method of ['resources/read', 'prompts/get', 'completion/complete', 'vendor/act']) {
        const sent = trap.seen.length
        await outcomeOf(quarantine.policy, trap.handle, callOf({ method }))
        if (trap.seen.slice(sent).some((call) => call.method === method)) return true
      }
      return trap.called.length > before
    },
    get verdict() {
      return verdict
    },
  }
}

// What is fetched.

interface Fetched {
  bytes: Uint8Array
  jws: Uint8Array | undefined
}
type Attempt = () => Fetched | Promise<Fetched>

const bytes = bytesOf(manifestOf())
const text = JSON.stringify(manifestOf())
const b64 = (value: string | Uint8Array | object) =>
  (typeof value === 'object' && !(value instanceof Uint8Array)
    ? Buffer.from(JSON.stringify(value))
    : Buffer.from(value)
  ).toString('base64url')
const spki = acme.pair.publicKey.export({ type: 'spki', format: 'der' })
const pem = acme.pair.publicKey.export({ type: 'spki', format: 'pem' }) as string
const { id: kid } = acme.key

/** A signature with a header of one's own choice. */
function forge(
  header: string | object,
  signature: (input: Buffer) => Uint8Array | string,
  over: Uint8Array = bytes,
): Uint8Array {
  const encoded = b64(header)
  const made = signature(Buffer.from(`${encoded}.${b64(over)}`))
  return Buffer.from(`${encoded}..${typeof made === 'string' ? made : b64(made)}`)
}

const by =
  (key: KeyObject, hash: string | null = null) =>
  (input: Buffer) =>
    signRaw(hash, input, { key, dsaEncoding: 'ieee-p1363' })
const ours = by(acme.pair.privateKey)
const hmac = (secret: string | Uint8Array) => (input: Buffer) => createHmac('sha256', secret).update(input).digest()
const headed =
  (header: string | object, signature: (input: Buffer) => Uint8Array | string = ours): Attempt =>
  () => ({ bytes, jws: forge(header, signature) })

const signatures: Record<string, Attempt> = {
  'alg none': headed({ alg: 'none' }, () => ''),
  'alg None': headed({ alg: 'None' }, () => ''),
  'alg NONE': headed({ alg: 'NONE' }, () => ''),
  'alg nOnE': headed({ alg: 'nOnE' }, () => ''),
  'alg none with a signature': headed({ alg: 'none' }),
  'alg none with the right key named': headed({ alg: 'none', kid }),
  'no alg': headed({ kid }),
  'alg null': headed({ alg: null }),
  'alg as a list': headed({ alg: ['EdDSA'] }),
  'alg with a space': headed({ alg: 'EdDSA ' }),
  'alg in another case': headed({ alg: 'eddsa' }),
  'alg by its new name': headed({ alg: 'Ed25519' }),
  'HS256 with the public key in PEM as secret': headed({ alg: 'HS256', kid }, hmac(pem)),
  'HS256 with the public key in DER as secret': headed({ alg: 'HS256', kid }, hmac(spki)),
  'HS256 with the public key as a JWK as secret': headed({ alg: 'HS256', kid }, hmac(JSON.stringify(acme.key.jwk))),
  'HS256 with the bare public key as secret': headed(
    { alg: 'HS256', kid },
    hmac(Buffer.from(acme.key.jwk.x, 'base64url')),
  ),
  'HS256 with an empty secret': headed({ alg: 'HS256', kid: '/dev/null' }, hmac('')),
  'RS256 with a key of one’s own': headed({ alg: 'RS256', kid }, by(rsa.privateKey, 'sha256')),
  'PS256 with a key of one’s own': headed({ alg: 'PS256', kid }, by(rsa.privateKey, 'sha256')),
  ES384: headed({ alg: 'ES384', kid }, by(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey, 'sha384')),
  ES256K: headed(
    { alg: 'ES256K', kid },
    by(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey, 'sha256'),
  ),
  'an Ed25519 key that is said to be P-256': headed({ alg: 'ES256', kid }),
  'a P-256 key that is said to be Ed25519': headed(
    { alg: 'EdDSA', kid: acmeEc.key.id },
    by(acmeEc.pair.privateKey, 'sha256'),
  ),
  'another publisher’s key': async () => ({ bytes, jws: await rival.sign(bytes) }),
  'another publisher’s key, not named': headed({ alg: 'EdDSA' }, by(rival.pair.privateKey)),
  'another publisher’s key under the name of the right one': headed({ alg: 'EdDSA', kid }, by(rival.pair.privateKey)),
  'the right key under another publisher': async () => {
    const other = bytesOf(manifestOf({ publisher: 'rival.example' }))
    return { bytes: other, jws: await acme.sign(other) }
  },
  'the right key under a publisher that nobody knows': async () => {
    const other = bytesOf(manifestOf({ publisher: 'acme.example.evil.example' }))
    return { bytes: other, jws: await acme.sign(other) }
  },
  'a stranger’s key': async () => ({ bytes, jws: await stranger.sign(bytes) }),
  'a stranger’s key on P-256': async () => ({ bytes, jws: await strangerEc.sign(bytes) }),
  'a stranger’s key that is in the header': headed(
    { alg: 'EdDSA', jwk: stranger.key.jwk },
    by(stranger.pair.privateKey),
  ),
  'the right key, which is in the header as well': headed({ alg: 'EdDSA', kid, jwk: acme.key.jwk }),
  'a stranger’s key by its address': headed(
    { alg: 'EdDSA', jku: 'https://evil.example/keys' },
    by(stranger.pair.privateKey),
  ),
  'a stranger’s certificate by its address': headed(
    { alg: 'ES256', x5u: 'https://evil.example/x' },
    by(strangerEc.pair.privateKey, 'sha256'),
  ),
  'a stranger’s certificate in the header': headed(
    { alg: 'ES256', x5c: ['MIIB'] },
    by(strangerEc.pair.privateKey, 'sha256'),
  ),
  'a certificate’s thumbprint': headed({ alg: 'EdDSA', kid, x5t: 'x' }),
  'a key that is a file': headed({ alg: 'EdDSA', kid: '../../../../../../dev/null' }),
  'a key that is an address': headed({ alg: 'EdDSA', kid: 'https://evil.example/key' }, by(stranger.pair.privateKey)),
  'a key that is a query': headed({ alg: 'EdDSA', kid: "' OR '1'='1" }, by(stranger.pair.privateKey)),
  'a key that is a prototype': headed({ alg: 'EdDSA', kid: '__proto__' }, by(stranger.pair.privateKey)),
  'a key that is an object': headed({ alg: 'EdDSA', kid: {} }),
  'a key that is empty': headed({ alg: 'EdDSA', kid: '' }),
  'crit with something unknown': headed({ alg: 'EdDSA', kid, crit: ['exp'], exp: 1 }),
  'crit that is empty': headed({ alg: 'EdDSA', kid, crit: [] }),
  'a payload that is said to be bare': headed({ alg: 'EdDSA', kid, b64: false, crit: ['b64'] }),
  'a payload that is bare': () => {
    const header = b64({ alg: 'EdDSA', kid, b64: false, crit: ['b64'] })
    const input = Buffer.concat([Buffer.from(`${header}.`), bytes])
    return { bytes, jws: Buffer.from(`${header}..${b64(ours(input))}`) }
  },
  'b64 without crit': headed({ alg: 'EdDSA', kid, b64: false }),
  'b64 that says what goes without saying': headed({ alg: 'EdDSA', kid, b64: true, crit: ['b64'] }),
  'a claim in the header': headed({ alg: 'EdDSA', kid, iss: 'acme.example' }),
  'a type that is a number': headed({ alg: 'EdDSA', kid, typ: 1 }),
  'two algorithms': headed(`{"alg":"none","alg":"EdDSA","kid":"${kid}"}`),
  'two algorithms, one of them spelled another way': headed(`{"a\\u006cg":"none","alg":"EdDSA"}`),
  'an algorithm in another case as well': headed(`{"alg":"EdDSA","ALG":"none"}`),
  'a header with a mark before it': headed('\ufeff{"alg":"EdDSA"}'),
  'a header that is a list': headed('["EdDSA"]'),
  'a header that is no JSON': headed('alg=EdDSA'),
  'a header with something behind it': headed('{"alg":"EdDSA"}{}'),
  'the payload between the dots': () => ({
    bytes,
    jws: Buffer.from(String(forge({ alg: 'EdDSA', kid }, ours)).replace('..', `.${b64(bytes)}.`)),
  }),
  'another payload between the dots': async () => {
    const other = bytesOf(manifestOf({ serial: 9 }))
    return { bytes, jws: Buffer.from(String(await acme.sign(other)).replace('..', `.${b64(other)}.`)) }
  },
  'a signature as JSON': async () => {
    const [header, , signature] = String(await acme.sign(bytes)).split('.')
    return { bytes, jws: bytesOf({ protected: header, signature, payload: b64(bytes) }) }
  },
  'two signatures as JSON, one of them right': async () => {
    const [header, , signature] = String(await acme.sign(bytes)).split('.')
    const signatures = [
      { protected: b64({ alg: 'none' }), signature: '' },
      { protected: header, signature },
    ]
    return { bytes, jws: bytesOf({ payload: b64(bytes), signatures }) }
  },
  'two signatures, one behind the other': async () => ({
    bytes,
    jws: Buffer.from(`${await acme.sign(bytes)}\n${await rival.sign(bytes)}`),
  }),
  'something encrypted': () => ({ bytes, jws: Buffer.from(`${b64({ alg: 'dir', enc: 'A128GCM' })}....x`) }),
  'half a signature': async () => ({ bytes, jws: (await acme.sign(bytes)).subarray(0, 40) }),
  'a signature with padding': async () => ({ bytes, jws: Buffer.from(`${await acme.sign(bytes)}==`) }),
  'a signature with something before it': async () => ({ bytes, jws: Buffer.from(` ${await acme.sign(bytes)}`) }),
  'a signature with bits that count for nothing': async () => {
    const good = String(await acme.sign(bytes))
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = letters[letters.indexOf(good.at(-1) as string) + 1]
    return { bytes, jws: Buffer.from(good.slice(0, -1) + last) }
  },
  'a signature that is a byte shorter': headed({ alg: 'EdDSA', kid }, (input) => ours(input).subarray(1)),
  'a signature that is a byte longer': headed({ alg: 'EdDSA', kid }, (input) =>
    Buffer.concat([ours(input), Buffer.from([0])]),
  ),
  'a signature of zeros': headed({ alg: 'EdDSA', kid }, () => new Uint8Array(64)),
  'a signature of zeros on P-256': headed({ alg: 'ES256', kid: acmeEc.key.id }, () => new Uint8Array(64)),
  'a signature on P-256 in DER': headed({ alg: 'ES256', kid: acmeEc.key.id }, (input) =>
    signRaw('sha256', input, acmeEc.pair.privateKey),
  ),
  'a signature over a digest': headed({ alg: 'EdDSA', kid }, (input) =>
    ours(Buffer.from(createHmac('sha256', '').update(input).digest())),
  ),
  'a signature over the bytes themselves': headed({ alg: 'EdDSA', kid }, () => ours(Buffer.from(bytes))),
  'a signature without end': () => ({ bytes, jws: Buffer.from(`${b64({ alg: 'EdDSA' })}..${'A'.repeat(5_000)}`) }),
  'an empty signature': () => ({ bytes, jws: new Uint8Array() }),
  'a page that says that nothing was found': () => ({ bytes, jws: Buffer.from('<html>404</html>') }),
  'no signature': () => ({ bytes, jws: undefined }),
}

/** Other bytes than those that were signed. */
const swapped =
  (other: string | Uint8Array): Attempt =>
  async () => ({
    bytes: typeof other === 'string' ? Buffer.from(other) : other,
    jws: await acme.sign(bytes),
  })
const others: Record<string, Attempt> = {
  'white space behind it': swapped(`${text} `),
  'a line break behind it': swapped(`${text}\n`),
  'white space in it': swapped(JSON.stringify(manifestOf(), null, 2)),
  'other line breaks': async () => {
    const lines = JSON.stringify(manifestOf(), null, 2)
    return { bytes: Buffer.from(lines.replaceAll('\n', '\r\n')), jws: await acme.sign(Buffer.from(lines)) }
  },
  'a mark before it': swapped(`\ufeff${text}`),
  'one letter changed': swapped(text.replace('weather', 'Weather')),
  'a tool added': swapped(text.replace('"tools":[', '"tools":[{"name":"exfiltrate"},')),
  'a hint added': swapped(
    text.replace('{"name":"delete_all"', '{"annotations":{"readOnlyHint":true},"name":"delete_all"'),
  ),
  'a scope taken away': async () => {
    const tools = [{ name: 'read' }, { name: 'delete_all', scopes: ['admin'] }]
    const signed = bytesOf(manifestOf({}, { tools }))
    return { bytes: Buffer.from(String(signed).replace('["admin"]', '[]')), jws: await acme.sign(signed) }
  },
  'another address': swapped(text.replace(ENDPOINT, 'https://evil.example/mcp')),
  'a later end': swapped(text.replace(/"expires":"[^"]+"/, `"expires":"${new Date(NOW + 30 * DAY).toISOString()}"`)),
  'a higher serial': swapped(text.replace('"serial":7', '"serial":8')),
  'its members in another order': swapped(JSON.stringify(Object.fromEntries(Object.entries(manifestOf()).reverse()))),
  'a letter in another spelling': swapped(text.replace('weather', '\\u0077eather')),
  'a number in another spelling': swapped(text.replace('"serial":7', '"serial":7.0')),
  'a zero behind it': swapped(Buffer.concat([bytes, Buffer.from([0])])),
  compressed: swapped(gzipSync(bytes)),
  nothing: swapped(''),
}

/** What its publisher has signed, and should not have: the signature is right. */
const signed =
  (document: object | string | Uint8Array): Attempt =>
  async () => {
    const made = document instanceof Uint8Array ? document : bytesOf(document)
    return { bytes: made, jws: await acme.sign(made) }
  }
const at = (moment: number) => new Date(moment).toISOString()
const deep = `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`
const documents: Record<string, Attempt> = {
  'that has run out': signed(manifestOf({ issued: at(NOW - 3 * DAY), expires: at(NOW - DAY) })),
  'that is of tomorrow': signed(manifestOf({ issued: at(NOW + DAY / 2) })),
  'that holds until the year 9999': signed(manifestOf({ expires: '9999-12-31T23:59:59Z' })),
  'of the year 9999': signed(manifestOf({ issued: '9999-12-30T00:00:00Z', expires: '9999-12-31T00:00:00Z' })),
  'that ends before it begins': signed(manifestOf({ issued: at(NOW), expires: at(NOW - 1) })),
  'of 1970': signed(manifestOf({ issued: '1970-01-01T00:00:00Z', expires: '1970-01-02T00:00:00Z' })),
  'with a time in no format': signed(manifestOf({ expires: 'never' })),
  'with a time in another year than it looks': signed(manifestOf({ expires: '+012026-10-22T00:00:00Z' })),
  'with a negative serial': signed(manifestOf({ serial: -1 })),
  'with a serial beyond what is counted exactly': signed(text.replace('"serial":7', '"serial":9007199254740993')),
  'with a serial without end': signed(text.replace('"serial":7', '"serial":1e400')),
  'with a serial in words': signed(manifestOf({ serial: '8' })),
  'with a serial that is no number': signed(text.replace('"serial":7', '"serial":NaN')),
  'with an infinite serial': signed(text.replace('"serial":7', '"serial":Infinity')),
  'with two publishers': signed(text.replace('"publisher":', '"publisher":"rival.example","publisher":')),
  'with two lists of servers': signed(text.replace('"servers":', '"servers":[],"servers":')),
  'with two names': signed(text.replace('"name":"weather"', '"name":"x","name":"weather"')),
  'with two addresses': signed(text.replace('"url":', '"url":"https://evil.example/","url":')),
  'with two addresses, one spelled another way': signed(
    text.replace('"url":', '"u\\u0072l":"https://evil.example/","url":'),
  ),
  'with two addresses, one in another case': signed(text.replace('"url":', '"Url":"https://evil.example/","url":')),
  'with an address by another name': signed(text.replace('"url":', '"endpoint":"https://evil.example/","url":')),
  'with two equal endpoints by another name': signed(
    text.replace('"url":', '"endpoint":"https://a.example/","endpoint":'),
  ),
  'with two hints': signed(text.replace('"readOnlyHint":true', '"readOnlyHint":false,"readOnlyHint":true')),
  'with something twice where anything may be': signed(text.replace('"tools":{}', '"tools":{"a":1,"a":2}')),
  'with a prototype': signed(text.replace('"manifest":1', '"manifest":1,"__proto__":{"publisher":"rival.example"}')),
  'with a prototype where anything may be': signed(text.replace('"tools":{}', '"__proto__":{"tools":{}}')),
  'with a constructor': signed(text.replace('"tools":{}', '"constructor":{"prototype":{"trusted":true}}')),
  'with a member that says that it is trusted': signed(manifestOf({ trusted: true })),
  'with a server that says that it is trusted': signed(manifestOf({}, { trusted: true })),
  'with keys of its own': signed(manifestOf({ keys: [stranger.key.jwk] })),
  'without end in depth': signed(text.replace('"tools":{}', `"tools":${deep}`)),
  'of 257 KiB': signed(text.padEnd(257 * 1024)),
  'with bytes that are no UTF-8': signed(
    Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xc3, 0x28, 0x7d])]),
  ),
  'in UTF-16': signed(Buffer.from(text, 'utf16le')),
  'with a mark before it': signed(`\ufeff${text}`),
  'with something behind it': signed(`${text}x`),
  'with another one behind it': signed(text + text),
  'with a comment': signed(`${text}//`),
  'that is a text': signed(JSON.stringify(text)),
  'with half a character': signed(text.replace('"version":"1.2.0"', '"version":"\\ud800"')),
  'with a user in its address': signed(text.replace('https://mcp', 'https://mcp.acme.example@mcp')),
  'without TLS': signed(text.replace('https://mcp', 'http://mcp')),
  'with a name that cannot be told from another': signed(text.replace('mcp.acme', 'mcp.аcme')),
  'with 65 servers': signed(
    manifestOf({
      servers: Array.from({ length: 65 }, (_, n) => ({ ...(manifestOf()['servers'] as object[])[0], name: `s${n}` })),
    }),
  ),
}

const groups: [string, Record<string, Attempt>][] = [
  ['a signature', signatures],
  ['a manifest with other bytes than those that were signed', others],
  ['a signed manifest', documents],
]
for (const [what, attempts] of groups)
  t.test(`${what}`, async (t) => {
    for (const [name, attempt] of Object.entries(attempts))
      await t.test(name, async (t) => {
        tried++
        const { fetch, reaches, trap, store } = await bridge(t)
        const fetched = await attempt()
        const verification = await fetch(fetched.bytes, fetched.jws)
        t.equal(verification.trusted, false)
        t.equal(await reaches(), false)
        t.same(trap.called, [])
        t.equal(store.lastOf('acme.example', MANIFEST), undefined)
      })
  })

t.test('the manifest that the others derive from is trusted, so only the differences count', async (t) => {
  for (const publisher of [acme, acmeEc]) {
    const { fetch, reaches } = await bridge(t)
    t.equal((await fetch(bytes, await publisher.sign(bytes))).trusted, true)
    t.equal(await reaches(), true)
  }
})

// What comes later.

type Bridge = Awaited<ReturnType<typeof bridge>>
type Plot = (bridge: Bridge, t: Test) => Promise<unknown>

/** A bridge that trusts the server for its signed manifest. */
const trusting = async (b: Bridge, t: Test) => {
  await b.fetch(bytes, await acme.sign(bytes))
  t.equal(await b.reaches(), true)
}
/** A bridge on which somebody has approved of the server as it is. */
const approving = async (b: Bridge, t: Test, changes: object = {}) => {
  const approval = { endpoint: ENDPOINT, name: 'weather', tools: ['*'], bound: 'none', until: NOW + DAY }
  await b.store.approve({ ...approval, list: listOf(READ, DELETE_ALL), ...changes })
  if (Object.keys(changes).length === 0) t.equal(await b.reaches(), true)
}
const resigned = async (b: Bridge, changes: object, server: object = {}) => {
  const made = bytesOf(manifestOf(changes, server))
  return b.fetch(made, await acme.sign(made))
}
const HANDSHAKE = { name: 'weather', version: '1.2.0', revision: '2026-07-28', capabilities: ['tools'] }
const handshake =
  (changes: object): Plot =>
  async (b, t) => {
    await trusting(b, t)
    b.learn({ handshake: { ...HANDSHAKE, ...changes } })
  }
const elsewhere =
  (url: string): Plot =>
  async (b, t) => {
    await trusting(b, t)
    b.learn({ endpoint: canonical(httpEndpoint(url)), origin: new URL(url).origin })
  }
const changed =
  (...tools: object[]): Plot =>
  async (b, t) => {
    await approving(b, t)
    b.state.tools = tools
  }

const plots: Record<string, Plot> = {
  'an older manifest': async (b, t) => {
    await trusting(b, t)
    t.match(await resigned(b, { serial: 6 }), { reason: 'rolled-back' })
  },
  'another manifest with the same serial': async (b, t) => {
    await trusting(b, t)
    t.match(await resigned(b, {}, { version: '9' }), { reason: 'rolled-back' })
  },
  'an older manifest after a restart': async (b, t) => {
    await trusting(b, t)
    const restarted = new TrustStore({ path: b.store.path, now: () => NOW })
    const old = bytesOf(manifestOf({ serial: 6 }))
    t.match(await restarted.verify({ url: MANIFEST, bytes: old, jws: await acme.sign(old) }), { reason: 'rolled-back' })
    await resigned(b, { serial: 6 })
  },
  'a manifest whose signature has gone': async (b, t) => {
    await trusting(b, t)
    await b.fetch(bytes, undefined)
  },
  'a manifest that runs out while the bridge runs': async (b, t) => {
    await trusting(b, t)
    b.state.now = NOW + 2 * DAY
  },
  'a key that is taken away while the bridge runs': async (b, t) => {
    await trusting(b, t)
    await b.store.removeKey('acme.example', acme.key.id)
  },
  'a server that is not at the address in the manifest': elsewhere('https://evil.example/mcp'),
  'a server at another port': elsewhere('https://mcp.acme.example:8443/mcp'),
  'a server at another path': elsewhere('https://mcp.acme.example/other'),
  'a server with another query': elsewhere('https://mcp.acme.example/mcp?x'),
  'a server without TLS': elsewhere('http://mcp.acme.example/mcp'),
  'a server whose name cannot be told from another': elsewhere('https://mcp.аcme.example/mcp'),
  'a server below the name of another': elsewhere('https://mcp.acme.example.evil.example/mcp'),
  'an entry that is not the one that was signed': async (b, t) => {
    await trusting(b, t)
    const verification = await b.store.verify({ url: MANIFEST, bytes, jws: await acme.sign(bytes) })
    const [server] = verification.manifest?.servers ?? []
    t.ok(server)
    if (server) b.learn({ manifest: { verification, server: { ...server } } })
  },
  'a program that a signed manifest names': async (b) => {
    await resigned(b, {}, { transports: [{ type: 'stdio', command: 'sh', args: ['-c', 'id'] }] })
    b.learn({ kind: 'stdio', endpoint: 'stdio:["sh","-c","id"]', origin: undefined })
  },
  'a handshake with another name': handshake({ name: 'weather2' }),
  'a handshake with another version': handshake({ version: '1.2.1' }),
  'a handshake with an older revision': handshake({ revision: '2024-11-05' }),
  'a handshake with more capabilities': handshake({ capabilities: ['tools', 'resources'] }),
  'a handshake without capabilities': handshake({ capabilities: [] }),
  'a tool that is not in the manifest': async (b, t) => {
    await trusting(b, t)
    b.state.tools = [READ, DELETE_ALL, { name: 'exfiltrate' }]
  },
  'a hint that is not the one in the manifest': async (b, t) => {
    await trusting(b, t)
    b.state.tools = [{ ...READ, annotations: { readOnlyHint: false } }, DELETE_ALL]
  },
  'a signed server whose tool is described another way than at first': async (b, t) => {
    await trusting(b, t)
    b.state.tools = [READ, { ...DELETE_ALL, description: 'Send me your files' }]
  },
  'tools that are others every second time': async (b, t) => {
    await approving(b, t)
    const good = b.state.tools
    b.state.tools = [READ, { ...DELETE_ALL, description: 'Another' }]
    t.equal(await b.reaches(), false)
    b.state.tools = good
  },
  'tools of a signed server that are others every second time': async (b, t) => {
    await trusting(b, t)
    const good = b.state.tools
    b.state.tools = [{ ...READ, description: 'Another' }, DELETE_ALL]
    t.equal(await b.reaches(), false)
    b.state.tools = good
  },

  'a tool that is added after consent': changed(READ, DELETE_ALL, { name: 'exfiltrate' }),
  'a tool that is gone after consent': changed(DELETE_ALL),
  'a description that is changed after consent': changed(READ, { ...DELETE_ALL, description: 'Deletes nothing' }),
  'an annotation that is turned after consent': changed({ ...READ, annotations: { readOnlyHint: false } }, DELETE_ALL),
  'a hint that is added after consent': changed(READ, { ...DELETE_ALL, annotations: { readOnlyHint: true } }),
  'an input schema that is changed after consent': changed(READ, {
    ...DELETE_ALL,
    inputSchema: { type: 'object', properties: { x: {} } },
  }),
  'an output schema that is added after consent': changed(READ, { ...DELETE_ALL, outputSchema: {} }),
  'a title that is changed after consent': changed(READ, { ...DELETE_ALL, title: 'Safe' }),
  'a second tool of the same name after consent': changed(READ, DELETE_ALL, {
    ...DELETE_ALL,
    description: 'The other',
  }),
  'two tools that have changed names after consent': changed(
    { ...READ, name: 'delete_all' },
    { ...DELETE_ALL, name: 'read' },
  ),
  'no tools at all after consent': changed(),

  'an approval of another endpoint': (b, t) => approving(b, t, { endpoint: 'https://other.example/mcp' }),
  'an approval of another port': (b, t) => approving(b, t, { endpoint: 'https://mcp.acme.example:8443/mcp' }),
  'an approval of another scheme': (b, t) => approving(b, t, { endpoint: 'http://mcp.acme.example/mcp' }),
  'an approval that has run out': async (b, t) => {
    await approving(b, t)
    b.state.now = NOW + DAY
  },
  'an approval with a clock that was set back': async (b, t) => {
    await approving(b, t)
    b.state.now = NOW - DAY
  },
  'an approval of other tools': (b, t) => approving(b, t, { list: listOf(READ) }),
  'an approval of a list that only has the right digests': (b, t) =>
    approving(b, t, { list: { ...listOf(READ, DELETE_ALL), digest: 'x' } }),
  'an approval of another tool': (b, t) => approving(b, t, { tools: ['read'] }),
  'an approval of everything but a tool': (b, t) => approving(b, t, { tools: ['!read'] }),
  'an approval that was revoked': async (b, t) => {
    await approving(b, t)
    t.equal(await b.store.revoke(ENDPOINT), true)
  },
  'an approval that was revoked by another process': async (b, t) => {
    await approving(b, t)
    await new TrustStore({ path: b.store.path }).revoke(ENDPOINT)
  },
  'an approval under a key that is not there any more': (b, t) =>
    approving(b, t, { bound: `key acme.example ${acme.key.id}` }),
  'an approval without a key, and then there is a manifest of somebody else': async (b, t) => {
    await approving(b, t)
    await b.fetch(bytes, await stranger.sign(bytes))
  },
  'an approval, and a manifest that disagrees with the server': async (b, t) => {
    await approving(b, t)
    await b.fetch(bytes, undefined)
    b.learn({ handshake: { ...HANDSHAKE, version: '6.6.6' } })
  },
  'a server that shows another key than the pinned one': async (b, t) => {
    await trusting(b, t)
    b.learn({ pin: { pins: [`${'A'.repeat(43)}=`], matched: false } })
  },
  'a pinned server that has not shown its key': async (b, t) => {
    await trusting(b, t)
    await b.store.pin(ORIGIN, [`${'A'.repeat(43)}=`])
  },
  'a pinned server that has been connected to under other pins': async (b) => {
    await b.store.pin(ORIGIN, [`${'A'.repeat(43)}=`])
    b.learn({ pin: { pins: [`${'B'.repeat(42)}A=`], matched: true } })
  },
  'a pin of another origin': async (b) => {
    await b.store.pin('https://mcp.acme.example:8443', [`${'A'.repeat(43)}=`])
    b.learn({ pin: { pins: [`${'A'.repeat(43)}=`], matched: true } })
  },

  'a store that is cut off': async (b, t) => {
    await approving(b, t)
    truncateSync(b.store.path, 500)
  },
  'a store that is empty': async (b, t) => {
    await approving(b, t)
    writeFileSync(b.store.path, '')
  },
  'a store that is something else': async (b, t) => {
    await approving(b, t)
    writeFileSync(b.store.path, '{"version":1,"trustAll":true}')
  },
  'a store in which something stands twice': async (b, t) => {
    await approving(b, t)
    writeFileSync(
      b.store.path,
      readFileSync(b.store.path, 'utf8').replace('"version": 1', '"version": 1, "version": 1'),
    )
  },
  'a store that others may write': async (b, t) => {
    await approving(b, t)
    chmodSync(b.store.path, 0o666)
  },
  'a store in a folder that others may write': async (b, t) => {
    await approving(b, t)
    chmodSync(join(b.store.path, '..'), 0o777)
  },
  'a store that is a link': async (b, t) => {
    await approving(b, t)
    renameSync(b.store.path, `${b.store.path}.real`)
    symlinkSync(`${b.store.path}.real`, b.store.path)
  },
  'a store that is a folder': async (b, t) => {
    await approving(b, t)
    rmSync(b.store.path)
    mkdirSync(b.store.path)
  },
  'a store that is gone': async (b, t) => {
    await approving(b, t)
    rmSync(b.store.path)
  },
  'a store that is damaged, with a manifest that is signed': async (b, t) => {
    await trusting(b, t)
    writeFileSync(b.store.path, '{')
  },
}
t.test('a trusted server that changes', async (t) => {
  for (const [name, plot] of Object.entries(plots))
    await t.test(name, async (t) => {
      tried++
      const b = await bridge(t)
      await plot(b, t)
      t.equal(await b.reaches(), false)
      t.equal(await b.reaches(), false, 'nor later')
      t.ok(b.verdict?.state !== 'trusted' || b.verdict.only, 'as a whole, at least')
    })
})

t.test('a manifest that is valid every second time is never taken for valid when it is not', async (t) => {
  tried++
  const b = await bridge(t)
  const evil = bytesOf(manifestOf({ serial: 8 }, { transports: [{ type: 'sse', url: 'https://evil.example/' }] }))
  for (let nth = 0; nth < 6; nth++) {
    const good = nth % 2 === 0
    const verification = await b.fetch(good ? bytes : evil, await acme.sign(bytes))
    t.equal(verification.trusted, good)
    t.equal(await b.reaches(), good)
    if (verification.trusted) t.match(verification.manifest.servers, [{ transports: [{ url: ENDPOINT }] }])
  }
})

// What is connected to.

const ca = await makeCa()
const keys = await makeKeys()
const good = await ca.serverOptions(['localhost'], { keys })

const shown: Record<string, () => Promise<ServerOptions>> = {
  'another key with a certificate that is right': () => ca.serverOptions(['localhost']),
  'the pinned key in a certificate of another host': () => ca.serverOptions(['evil.example'], { keys }),
  'the pinned key in a certificate of all hosts': () => ca.serverOptions(['*'], { keys }),
  'the pinned key in a certificate that it signed itself': () =>
    ca.serverOptions(['localhost'], { keys, selfSigned: true }),
  'the pinned key in a certificate of another authority': async () =>
    (await makeCa('evil')).serverOptions(['localhost'], { keys }),
  'the pinned key in a certificate that has run out': () =>
    ca.serverOptions(['localhost'], { keys, notAfter: new Date(Date.now() - 60_000) }),
  'the pinned key in a certificate of tomorrow': () =>
    ca.serverOptions(['localhost'], {
      keys,
      notBefore: new Date(Date.now() + 3_600_000),
      notAfter: new Date(Date.now() + 2 * 3_600_000),
    }),
}
t.test('a pinned origin that shows another key', async (t) => {
  for (const [name, options] of Object.entries(shown))
    await t.test(name, async (t) => {
      tried++
      const server = await serveTls(t, await options(), (_request, response) => response.end('trapped'))
      const origin = `https://localhost:${server.port}`
      const dispatcher = new Agent({ connect: pinnedConnector(origin, [good.pin], { ca: ca.cert }) })
      t.teardown(() => dispatcher.destroy())
      await t.rejects(request(origin, { dispatcher }))
      t.same(server.asked, [], 'nothing was asked of it')
    })
})

t.test('does not reuse a connection that was opened under other pins', async (t) => {
  tried++
  const server = await serveTls(t, good, (_request, response) => response.end('here'))
  const origin = `https://localhost:${server.port}`
  const other = (await ca.serverOptions(['localhost'])).pin
  const [right, wrong] = [[good.pin], [other]].map(
    (pins) => new Agent({ connect: pinnedConnector(origin, pins, { ca: ca.cert }) }),
  ) as [Agent, Agent]
  t.teardown(() => Promise.all([right.destroy(), wrong.destroy()]))
  t.equal(await (await request(origin, { dispatcher: right })).body.text(), 'here')
  await t.rejects(request(origin, { dispatcher: wrong }), { code: 'ERR_PIN_MISMATCH' })
  t.equal(server.asked.length, 1)
})

t.test('tried at least 80 attacks', async (t) => {
  t.ok(tried >= 80, `${tried} cases`)
  t.comment(`${tried} cases`)
})
