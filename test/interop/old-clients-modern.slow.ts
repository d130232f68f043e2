/** All combinations of old-clients-modern.ts. */
import { testOldClients } from './old-clients-modern.js'

await testOldClients('all')
