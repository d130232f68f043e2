/** The other combinations of endings.ts. */
import { testEndings } from './endings.js'

await testEndings('rest')
