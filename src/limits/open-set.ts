/**
 * Collections for objects that live as long as a call. V8 does not keep these objects after they are deleted.
 *
 * V8 may keep what was in a Map or a Set although it was deleted long ago. A table that is full is replaced by a new one,
 * and refers to that. Once a table is old, all tables that replace it are made among the old objects, too, and short
 * collections treat all of them as live: so the objects of every call stayed in memory until the next full collection,
 * and were copied twice before that. Here, a table holds small places that are empty when they are deleted.
 */

/** The place of an object in a collection; empty when it has been deleted. */
export interface OpenSetPlace<T> {
  held: T | undefined
}

/** A set of objects that live as long as a call, in the order in which they were added. */
export class OpenSet<T extends object> implements Iterable<T> {
  readonly #places = new Set<OpenSetPlace<T>>()

  get size(): number {
    return this.#places.size
  }

  /** Adds an object. Returns its place, which is needed to delete it. */
  add(held: T): OpenSetPlace<T> {
    const place: OpenSetPlace<T> = { held }
    this.#places.add(place)
    return place
  }

  delete(place: OpenSetPlace<T>): void {
    place.held = undefined
    this.#places.delete(place)
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const { held } of this.#places) if (held) yield held
  }
}
