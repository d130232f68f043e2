/**
 * Counts what code does, in steps rather than in milliseconds: how often each block of src/ is entered. Has to be imported
 * before what is counted, because only what is compiled from then on is counted.
 */
import { Session } from 'node:inspector'
import { setFlagsFromString } from 'node:v8'

interface Coverage {
  result: { url: string; functions: { ranges: { count: number }[] }[] }[]
}

// Code that V8 optimizes or throws away in the meantime would be counted in part.
for (const flag of ['--no-opt', '--no-flush-bytecode']) setFlagsFromString(flag)
const session = new Session()
session.connect()
post('Profiler.enable')
post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** Blocks of src/ that are entered while `work` runs. What V8 does by itself, such as `indexOf` or a RegExp, is not seen. */
export function stepsOf(work: () => unknown): number {
  post('Profiler.takePreciseCoverage')
  work()
  const { result } = post('Profiler.takePreciseCoverage') as Coverage
  return result
    .filter(({ url }) => url.includes('/src/'))
    .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
    .reduce((sum, { count }) => sum + count, 0)
}

/** Answered at once, because it is asked in the same thread. */
function post(method: string, params?: object): unknown {
  let answer: unknown
  session.post(method, params, (error, result) => {
    if (error) throw error
    answer = result
  })
  return answer
}
