/** What a frame of a CPU profile belongs to: a file of the bridge, a package, Node.js, or the engine. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface CallFrame {
  functionName: string
  url: string
  lineNumber: number
}

/** The part of what does not count. */
export const IDLE = '(idle)'

const PARTS: readonly [file: RegExp, part: string][] = [
  [/^\(idle\)$/, IDLE],
  // The profiler itself, which writes what it has recorded.
  [/^node:inspector$|\/profiler\.mjs$/, IDLE],
  [/^\(garbage collector\)$/, 'garbage collection'],
  [/^\(/, 'the engine and the kernel'],
  [/^node:(?:_http|internal\/http|http)/, 'Node.js: HTTP'],
  [
    /^node:(?:net|internal\/(?:stream_base|streams|net)|stream|internal\/child_process)/,
    'Node.js: sockets and streams',
  ],
  [/^node:/, 'Node.js: all else'],
  [/^src\/((?!app|command|config|inspector)[^/.]+)\/([^/.]+)\//, 'bridge: $1/$2'],
  [/^src\/([^/.]+)\//, 'bridge: $1'],
  [/^src\//, 'bridge: all else'],
  [/^(?:fastify|avvio|find-my-way|light-my-request|@fastify\/.*|fast-.*|secure-json-parse)$/, 'Fastify'],
  [/^undici$|^wasm:/, 'undici'],
  [/^[@\w.-]+(?:\/[\w.-]+)?$/, 'other packages'],
]

/** The part in the table of the document that a frame belongs to. */
export function partOf(frame: CallFrame): string {
  const file = fileOf(frame)
  for (const [pattern, part] of PARTS) {
    const found = pattern.exec(file)
    if (found) return part.replace(/\$(\d)/g, (_, group) => found[Number(group)] ?? '')
  }
  return file
}

/** A file of `src`, the name of a package, a module of Node.js, or what the profiler has in brackets. */
export function fileOf({ functionName, url, lineNumber }: CallFrame): string {
  if (url.startsWith('node:')) return url
  // Functions without a file are native: writes to sockets, the regular expressions, JSON.
  if (url === '') return functionName.startsWith('(') ? functionName : `(native) ${functionName}`
  return url.startsWith('file:') ? sourceOf(fileURLToPath(url), lineNumber) : url
}

/** The bundler writes the path of each source file, as a comment on a line of its own, before what comes from that file. */
function sourceOf(path: string, line: number): string {
  let sources = files.get(path)
  if (sources === undefined) {
    let source = packageOf(path)
    sources = readFileSync(path, 'utf8')
      .split('\n')
      .map((text) => {
        const [, next] = /^\/\/ ((?:\.\.\/)*(?:src|.*node_modules)\/.*)$/.exec(text) ?? []
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
