/** The calls in whose texts a word of the filter was found. */
import { signal } from '@preact/signals'

/** Ids of calls by words in lower case. */
export const foundInTexts = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map())
