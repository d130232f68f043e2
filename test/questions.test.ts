/** What users ask: each answer is at most two links from the README, under a heading that says so. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Question {
  asked: string
  /** The pages of the way, after README.md: each is linked from the one before. */
  way: readonly string[]
  heading: string
  /** What stands below the heading. */
  answer: RegExp
}

/** By what people ask about such programs in issues and forums. */
const QUESTIONS: readonly Question[] = [
  {
    asked: 'My new client cannot use my old server, or the other way round.',
    way: ['docs/README.md', 'docs/eras.md'],
    heading: 'What works between the eras',
    answer: /\| modern \| legacy \| translates/,
  },
  {
    asked: 'Give Bob read-only tools.',
    way: ['docs/permissions.md'],
    heading: 'Who may use which tools',
    answer: /Bob only those that the server marks as read-only/,
  },
  { asked: 'Run it under systemd.', way: ['docs/systemd.md'], heading: 'systemd', answer: /ExecStart=/ },
  {
    asked: 'My client sees 404 after a deploy.',
    way: ['docs/troubleshooting.md'],
    heading: 'What you see',
    answer: /\| 404 after a deploy or restart \|/,
  },
  {
    asked: 'Hundreds of processes of servers are left, and memory is full.',
    way: ['docs/README.md', 'docs/programs.md'],
    heading: 'Few programs for many clients',
    answer: /`timeouts\.\w+`[\s\S]*`limits\.processes`|`limits\.processes`[\s\S]*`timeouts\.\w+`/,
  },
  {
    asked: 'The questions of my server (elicitation) never reach the user.',
    way: ['docs/troubleshooting.md'],
    heading: 'What you see',
    answer: /does not ask its questions \(elicitation, sampling\)/,
  },
  {
    asked: 'What does a call cost through the bridge?',
    way: ['docs/README.md', 'docs/performance.md'],
    heading: 'A small call',
    answer: /\| modern-legacy-http \|/,
  },
  {
    asked: 'Sign in to a server from a machine without a browser.',
    way: ['docs/auth.md'],
    heading: 'What happens',
    answer: /Without a browser here\*\* \(SSH, a container/,
  },
  {
    asked: 'Let each caller bring a key of its own for a server.',
    way: ['docs/access.md'],
    heading: "Callers' own headers",
    answer: /"forward"/,
  },
  {
    asked: 'Two chats get answers of each other.',
    way: ['docs/README.md', 'docs/isolation.md'],
    heading: 'Modern clients',
    answer: /`per-request` \| nobody/,
  },
  {
    asked: 'Behind nginx, progress comes all at once, and streams end after a minute.',
    way: ['docs/reverse-proxy.md'],
    heading: 'nginx',
    answer: /proxy_buffering off;[\s\S]*proxy_read_timeout/,
  },
  {
    asked: 'Run it beside a server on stdio in a pod.',
    way: ['docs/kubernetes.md'],
    heading: 'Manifests',
    answer: /sidecar-stdio\.yaml/,
  },
  {
    asked: 'A result is too long for the model.',
    way: ['docs/results.md'],
    heading: 'What becomes of a result',
    answer: /cut/,
  },
  {
    asked: 'npx does not start from a client on Windows.',
    way: ['docs/clients.md'],
    heading: 'Programs that start their servers',
    answer: /On Windows,[\s\S]*spawn npx ENOENT[\s\S]*"cmd"/,
  },
  {
    asked: 'Replace supergateway or mcp-remote.',
    way: ['docs/moving.md'],
    heading: 'supergateway 4.0',
    answer: /--stdio/,
  },
]

t.test('fifteen questions of users have their answer two links from the README', async (t) => {
  t.equal(QUESTIONS.length, 15)
  for (const { asked, way, heading, answer } of QUESTIONS) {
    t.ok(way.length <= 2, `${asked} ${way.length} links`)
    let from = 'README.md'
    for (const page of way) {
      t.ok(linksOf(from).has(page), `${asked} ${from} leads to ${page}`)
      from = page
    }
    t.match(sectionOf(from, heading), answer, `${asked} ${from}: ${heading}`)
  }
})

t.test('pages for users have at most 48,000 words, with the README', async (t) => {
  const pages = ['README.md', 'docs/README.md', ...linksOf('docs/README.md')]
  const forUsers = [...new Set(pages)].filter((page) => /^(?:README|docs\/[\w-]+)\.md$/.test(page))
  const words = forUsers.reduce((sum, page) => sum + textOf(page).split(/\s+/).length, 0)
  t.ok(forUsers.length > 25, `${forUsers.length} pages`)
  t.ok(words <= 48_000, `${words} words`)
})

function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

/** The pages to which a page has links. */
function linksOf(page: string): ReadonlySet<string> {
  const targets = textOf(page).matchAll(/\]\((?![a-z]+:)([^)#\s]+\.md)/g)
  return new Set([...targets].map(([, to = '']) => relative(root, join(root, dirname(page), to)).replaceAll('\\', '/')))
}

/** What stands below a heading, to the next one of its level or above. */
function sectionOf(page: string, heading: string): string {
  const lines = textOf(page).split('\n')
  const at = lines.findIndex((line) => line.replace(/^#+ /, '') === heading && line.startsWith('#'))
  if (at < 0) return ''
  const { length: level } = /^#+/.exec(lines[at] as string)?.[0] ?? ''
  let isCode = false
  const rest = lines.slice(at + 1)
  const end = rest.findIndex((line) => {
    if (line.startsWith('```')) isCode = !isCode
    const { length: other } = /^#+(?= )/.exec(line)?.[0] ?? ''
    return !isCode && other > 0 && other <= level
  })
  return rest.slice(0, end < 0 ? undefined : end).join('\n')
}
