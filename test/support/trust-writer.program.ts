/** A process that writes into a trust store: `<path> <name> <count>` pins so many origins, or without end. */
import { argv, stdout } from 'node:process'
import { TrustStore } from '../../src/services/discovery/trust/store.js'

const [path = '', name = '', count = ''] = argv.slice(2)
const store = new TrustStore({ path })
const most = count === '' ? Number.POSITIVE_INFINITY : Number(count)

for (let nth = 0; nth < most; nth++) {
  // Without an end, the same ones again and again.
  await store.pin(`https://${name}-${nth % 50}.example`, [`${'A'.repeat(43)}=`])
  if (nth === 0) stdout.write('writing\n')
}
