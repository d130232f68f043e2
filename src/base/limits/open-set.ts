/**
 * A set for objects that live as long as a call, from which V8 can free deleted objects early.
 *
 * V8 keeps deleted entries of a Map or a Set alive for long. It replaces a full hash table by a new one, and the old table
 * refers to the new one. Once a table has moved to the old generation, V8 allocates its successors there too, and minor
 * garbage collections treat all of them as live. So the objects of every call stayed in memory until the next major
 * collection, and were copied twice before that. Here, a table holds small places, which are emptied on deletion.
 */

/** The place of an object in a set; empty after it has been deleted. */
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
