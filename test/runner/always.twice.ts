/** Fails each time that it runs, for test/tests.test.ts. */
import t from 'tap'

t.fail('a mistake that stays')
