/** Documents: links lead somewhere, what is not published is said, commands have flags that exist, and every source file says what it is. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { readArguments } from '../src/command/arguments.js'
import { temporaryFolder } from './support/folder.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const pages = [
  ...readdirSync(root).map((name) => join(root, name)),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => join(root, 'docs', name)),
  join(root, 'test/invariants.md'),
  join(root, 'config/helm/mcp-bridge/README.md'),
].filter((path) => path.endsWith('.md') && !/\.api\.md$/.test(path))
const textOf = (path: string) => readFileSync(path, 'utf8')
const nameOf = (path: string) => relative(root, path)

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(path: string): Set<string> {
  const seen = new Map<string, number>()
  const prose = textOf(path).replace(/^(`{3,}).*?^\1$/gms, '')
  const headings = [...prose.matchAll(/^#{1,6} +(.*)$/gm)].map(([, heading = '']) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = text.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
  const named = [...prose.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)
  return new Set([...headings, ...named])
}

t.test('links between documents lead to files and headings that exist', async (t) => {
  let links = 0
  for (const page of pages) {
    const prose = textOf(page)
      .replace(/^(`{3,}).*?^\1$/gms, '')
      .replace(/`[^`\n]*`/g, '')
    for (const [, target = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      links += 1
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page : join(dirname(page), file)
      t.ok(existsSync(path), `${nameOf(page)}: ${target}`)
      if (anchor !== undefined && path.endsWith('.md')) t.ok(anchorsOf(path).has(anchor), `${nameOf(page)}: ${target}`)
    }
  }
  t.ok(links > 100)
})

t.test('a page for users is short, and begins with a command, a file or a table', async (t) => {
  const short = pages.filter((page) => /^docs\/[\w-]+\.md$/.test(nameOf(page)))
  t.ok(short.length > 25, `${short.length} pages`)
  for (const page of short) {
    const words = textOf(page).split(/\s+/).length
    t.ok(words <= 2_000, `${nameOf(page)}: ${words} words`)
    const [beginning = ''] = textOf(page).split('\n## ')
    t.match(beginning, /^(?:```|\| )/m, `${nameOf(page)} begins with something to use`)
  }
  t.ok(textOf(join(root, 'docs/development/architecture.md')).split(/\s+/).length <= 4_000)
})

t.test('every page for users is two links from the README, and every other page is reached from there', async (t) => {
  const linked = [...textOf(join(root, 'docs/README.md')).matchAll(/\]\(([\w/-]+\.md)/g)].map(([, path]) => path)
  t.match(textOf(join(root, 'README.md')), '](docs/README.md)')
  for (const page of pages.map(nameOf).filter((name) => /^docs\/(?:reference\/)?[\w-]+\.md$/.test(name)))
    if (page !== 'docs/README.md') t.ok(linked.includes(page.replace('docs/', '')), page)
  const reached = new Set<string>()
  const follow = (page: string) => {
    if (reached.has(page) || !existsSync(page)) return
    reached.add(page)
    for (const [, target = ''] of textOf(page).matchAll(/\]\((?![a-z]+:)([^)#\s]+\.md)/g))
      follow(join(dirname(page), target))
  }
  follow(join(root, 'docs/README.md'))
  // All changes of a version are linked by its address, in CHANGELOG.md.
  const others = pages.filter((page) => /^docs\/(?!development\/changes\/)/.test(nameOf(page)))
  for (const page of others) t.ok(reached.has(page), nameOf(page))
})

t.test('pages have the marks between which the benchmark writes its figures', async (t) => {
  for (const [path, name] of [
    ['docs/comparison.md', 'comparison'],
    ['docs/performance.md', 'summary'],
    ['docs/development/performance.md', 'tables'],
    ['docs/development/performance.md', 'profile'],
    ['docs/development/replicas.md', 'replicas'],
  ] as const) {
    const inside = /<!-- (\w+): written by npm run bench -->([\s\S]*?)<!-- end of \1 -->/g
    const found = [...textOf(join(root, path)).matchAll(inside)].find(([, found]) => found === name)
    t.match(found?.[2], /^Commit .*\n\n[\s\S]*^\| /m, `${path}: ${name}`)
  }
})

t.test('the tests that documents name exist', async (t) => {
  let names = 0
  for (const page of pages)
    for (const [name] of textOf(page).matchAll(/\btest\/[\w/-]+\.(?:test|slow|soak|memory|field)\.ts\b/g)) {
      names += 1
      t.ok(existsSync(join(root, name)), `${nameOf(page)}: ${name}`)
    }
  t.ok(names > 50, `${names} names`)
})

t.test('the tests that run on a second Node.js exist', async (t) => {
  const [, listed = ''] = /--kind test,slow --again ([^\n]*(?:\n {4}[^\n]*)*)/.exec(textOf(join(root, '.ci/run'))) ?? []
  const names = listed.split(/[\s\\]+/).flatMap((word) => {
    const [, folder = '', inner] = /^(.*)\{(.*)\}$/.exec(word) ?? []
    return inner === undefined ? word : inner.split(',').map((name) => folder + name)
  })
  t.ok(names.length > 20)
  for (const name of names.filter((one) => one !== ''))
    t.ok(
      ['', '.test.ts', '.slow.ts'].some((ending) => existsSync(join(root, 'test', name + ending))),
      name,
    )
})

t.test('where an unpublished image, chart or package is named, the text says so nearby', async (t) => {
  const files = [...pages, join(root, 'config/kubernetes/kustomization.yaml')]
  let places = 0
  for (const page of files) {
    if (page.endsWith('SECURITY.md') || page.endsWith('CONTRIBUTING.md')) continue
    const lines = textOf(page).split('\n')
    for (const [at, line] of lines.entries()) {
      if (!/ghcr\.io\/mcp-bridge|npx (?:-y )?mcp-bridge\b|npm install -g mcp-bridge/.test(line)) continue
      places += 1
      t.match(
        lines.slice(Math.max(0, at - 16), at + 17).join('\n'),
        /published yet|not on the npm registry yet/,
        `${nameOf(page)}:${at + 1}`,
      )
    }
  }
  t.ok(places > 3)
})

t.test('commands in the documents have flags that exist', async (t) => {
  const commands = pages.flatMap((page) =>
    [...textOf(page).matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
      block
        .replaceAll('\\\n', ' ')
        .split('\n')
        // The first word, after variables; or the image of a container. A comment may follow.
        .flatMap((line) => /^(?:\w+=\S+ |docker run .* )*mcp-bridge (.*?)(?: +#.*)?$/.exec(line)?.[1] ?? []),
    ),
  )
  t.ok(commands.length > 50, `${commands.length} commands`)
  for (const command of commands) {
    const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
    t.ok(readArguments(words, { PATH: '/usr/bin:/bin' }), command)
  }
})

t.test('the tree prints every source file with what it is, or those with given words', async (t) => {
  const tree = async (...words: string[]) =>
    (await promisify(execFile)(execPath, ['.ci/tree.mjs', ...words], { cwd: root })).stdout
  t.match(await tree(), /^src\/main\.ts: The process: /m)
  const some = (await tree('oauth/', 'REFRESH')).trim().split('\n')
  t.ok(some.length > 0 && some.every((line) => /^src\/services\/oauth\/.*refresh/i.test(line)), some.join('\n'))
})

t.test('the tree fails on a file without a description, and on an event that no file logs', async (t) => {
  const folder = temporaryFolder(t)
  for (const name of ['.ci', 'src/base/net', 'src/base/log']) mkdirSync(join(folder, name), { recursive: true })
  cpSync(join(root, '.ci/tree.mjs'), join(folder, '.ci/tree.mjs'))
  const tree = (...args: string[]) => promisify(execFile)(execPath, ['.ci/tree.mjs', ...args], { cwd: folder })

  writeFileSync(
    join(folder, 'src/base/log/events.ts'),
    "/** The events. */\nexport const LOG_EVENTS = {\n  started: 'A.',\n} as const",
  )
  writeFileSync(
    join(folder, 'src/main.ts'),
    `#!/usr/bin/env node\n/**\n * Starts all of\n * it. And more.\n */\nlog.info({ event: 'started', ready: 'yes' })\n/** No. */`,
  )
  t.equal((await tree()).stdout, 'src/main.ts: Starts all of it. Logs started.\nsrc/base/log/events.ts: The events.\n')

  writeFileSync(join(folder, 'src/base/net/proxy.ts'), "import './fetch.js'\n")
  await t.rejects(tree(), /do not begin with a comment that says what they are: base\/net\/proxy\.ts\n$/)
  writeFileSync(join(folder, 'src/main.ts'), '/** Starts. */\n')
  writeFileSync(join(folder, 'src/base/net/proxy.ts'), '/** Finds proxies. */\n')
  await t.rejects(tree(), /No file logs these events of src\/base\/log\/events\.ts: started\n$/)
})
