/** Where the microseconds of a call go: a CPU profile of one candidate under load, summed up by file. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Candidate } from './candidates.js'
import { measureUnder } from './measure.js'
import type { Question } from './questions.js'

/** Self time of a part of the process. */
export interface Share {
  /** A file of `src`, a package, a module of Node.js, or what the profiler has in brackets. */
  part: string
  /** Microseconds per request. */
  each: number
  /** Of the time that is not idle. */
  share: number
}

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  timeDeltas: number[]
}

const CONNECTIONS = 64
const DURATION = 8_000

/** Profiles a candidate that is asked one question again and again. Parts with the largest share come first. */
export async function profile(candidate: Candidate, question: Question): Promise<Share[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-profile-'))
  try {
    const node = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500']
    const requests = await measureUnder(candidate, question, node, CONNECTIONS, DURATION)
    const [name = ''] = readdirSync(folder)
    return sharesOf(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Profile, requests)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function sharesOf({ nodes, samples, timeDeltas }: Profile, requests: number): Share[] {
  const parts = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]))
  const sums = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const part = parts.get(id) as string
    if (part !== '(idle)') sums.set(part, (sums.get(part) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const total = [...sums.values()].reduce((sum, one) => sum + one, 0)
  return [...sums]
    .map(([part, time]) => ({ part, each: time / requests, share: time / total }))
    .sort((a, b) => b.each - a.each)
}

function partOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  if (url.startsWith('node:')) return url
  if (!url.startsWith('file:')) return url === '' ? functionName : url
  return sourceOf(fileURLToPath(url), lineNumber)
}

/** The bundler writes the path of each source file, as a comment on a line of its own, before what comes from that file. */
function sourceOf(path: string, line: number): string {
  let sources = files.get(path)
  if (sources === undefined) {
    let source = packageOf(path)
    sources = readFileSync(path, 'utf8')
      .split('\n')
      .map((text) => {
        const [, next] = /^\/\/ ((?:src|node_modules)\/.*)$/.exec(text) ?? []
        if (next !== undefined) source = packageOf(next)
        return source
      })
    files.set(path, sources)
  }
  return sources[line] ?? path
}
const files = new Map<string, string[]>()

/** The name of the package that a path is in; the path itself where that is none. */
function packageOf(path: string): string {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path
}
