/**
 * Which combinations of two lists a file of tests takes, if all of them take long: `npm test` takes some, with each entry of each list
 * at least once, and `npm run test:slow` takes the rest.
 */
export type Part = 'some' | 'rest' | 'all'

export function combinations<A, B>(rows: readonly A[], columns: readonly B[], part: Part): [A, B][] {
  const size = Math.max(rows.length, columns.length)
  const some = new Set(Array.from({ length: size }, (_, n) => `${n % rows.length} ${n % columns.length}`))
  return rows.flatMap((row, i) =>
    columns.flatMap((column, j): [A, B][] =>
      part === 'all' || some.has(`${i} ${j}`) === (part === 'some') ? [[row, column]] : [],
    ),
  )
}
