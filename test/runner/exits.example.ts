/** A file that ends its process (tests.test.ts). */
import { exit } from 'node:process'
import t from 'tap'

t.test('this one ends all', async () => exit(0))
