/** A file without a test (tests.test.ts). */
import t from 'tap'

t.comment('nothing is tried here')
