import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type PemError, PemFiles, type PemPaths } from '../../src/base/net/pem-files.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { makeCa } from '../support/tls.js'

const ca = await makeCa()
const own = await ca.serverOptions(['mcp.example'])
const other = await ca.serverOptions(['mcp.example'])

const contentOf = (paths: PemPaths) => new PemFiles(paths).current

t.test('refuses unusable files, with the reason', async (t) => {
  const file = (content: string) => temporaryFile(t, 'some.pem', content)
  const [cert, key, absent] = [file(own.cert), file(own.key), join(temporaryFolder(t), 'absent.pem')]
  const binary = temporaryFile(t, 'cert.der', '')
  writeFileSync(binary, Buffer.from(own.cert.replace(/-----.*-----|\n/g, ''), 'base64'))
  const damaged = own.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA')
  const encrypted = `-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n`
  const cases: [name: string, paths: PemPaths, option: string, message: RegExp][] = [
    ['no file', { ca: absent }, 'ca', /^there is no file .*absent\.pem$/],
    ['a folder', { ca: temporaryFolder(t) }, 'ca', /cannot be read \(EISDIR\)$/],
    ['something else', { ca: file('hello') }, 'ca', /is not a PEM file$/],
    ['binary', { ca: binary }, 'ca', /is binary \(DER\): convert it with openssl x509 -inform der/],
    ['a key for a certificate', { ca: key }, 'ca', /has no certificate, but something else in PEM$/],
    ['damaged', { ca: file(damaged) }, 'ca', /has a damaged certificate$/],
    ['a damaged second one', { ca: file(own.cert + damaged) }, 'ca', /has a damaged certificate$/],
    ['its content', { cert: own.cert, key }, 'cert', /^has to be the path of a PEM file, not its content$/],
    ['its content', { cert, key: own.key }, 'key', /^has to be the path of a PEM file, not its content$/],
    ['a certificate for a key', { cert, key: cert }, 'key', /has no private key$/],
    ['a passphrase', { cert, key: file(encrypted) }, 'key', /has a passphrase: remove it with openssl pkey/],
    ['another key', { cert, key: file(other.key) }, 'key', /is not the private key of the certificate in /],
  ]
  for (const [name, paths, option, message] of cases) {
    const error = (() => {
      try {
        contentOf(paths)
        return undefined
      } catch (problem) {
        return problem as PemError
      }
    })()
    t.match(error, { name: 'PemError', option, message }, name)
    t.notMatch(error?.message, 'BEGIN', name)
  }
  t.same(contentOf({ ca: file(ca.cert), cert, key }), { ca: ca.cert, cert: own.cert, key: own.key })
  const marked = (text: string) => file(`\ufeff${text}`)
  t.same(
    contentOf({ ca: marked(ca.cert), cert: marked(own.cert), key: marked(own.key) }),
    { ca: ca.cert, cert: own.cert, key: own.key },
    'a byte order mark is ignored',
  )
  const both = file(own.key + own.cert)
  t.ok(contentOf({ cert: both, key: both }).key, 'certificate and key in one file')
})

t.test('recognizes a key that openssl has encrypted', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'key.pem')
  try {
    execFileSync('openssl', ['genpkey', '-algorithm', 'ED25519', '-aes256', '-pass', 'pass:secret', '-out', path])
  } catch {
    return t.pass('no openssl here')
  }
  t.throws(() => contentOf({ cert: temporaryFile(t, 'cert.pem', own.cert), key: path }), {
    message: /has a passphrase/,
  })
})

t.test('reads changed files again, and reports unusable ones once and does not use them', async (t) => {
  const folder = temporaryFolder(t)
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(cert, own.cert)
  writeFileSync(key, own.key)
  const problems: string[] = []
  const files = new PemFiles({ cert, key }, ({ option, message }) => problems.push(`${option}: ${message}`))
  const first = files.current
  t.equal(files.current, first, 'the same object while nothing changes')
  writeFileSync(cert, `${other.cert}\n`)
  t.equal(files.current, first, 'the key is still that of the other certificate')
  t.equal(files.current, first)
  t.equal(problems.length, 1)
  writeFileSync(key, other.key)
  t.equal(files.current.key, other.key)
  t.equal(problems.length, 1)
})

t.test('notices a change behind symbolic links, as Kubernetes makes them', async (t) => {
  const folder = temporaryFolder(t)
  for (const [name, { cert, key }] of Object.entries({ one: own, two: other })) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'tls.crt'), cert)
    writeFileSync(join(folder, name, 'tls.key'), key)
  }
  symlinkSync('one', join(folder, '..data'))
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, join(folder, name))
  const files = new PemFiles({ cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') })
  t.equal(files.current.cert, own.cert)
  symlinkSync('two', join(folder, '..new'))
  renameSync(join(folder, '..new'), join(folder, '..data'))
  t.equal(files.current.cert, other.cert)
})
