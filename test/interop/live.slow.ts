/** All combinations of live.ts. */
import { testLive } from './live.js'

await testLive('all')
