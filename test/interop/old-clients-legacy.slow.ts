/** All combinations of old-clients-legacy.ts. */
import { testOldClients } from './old-clients-legacy.js'

await testOldClients('all')
