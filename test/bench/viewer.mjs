/** Program: reads the events of an inspector, and does nothing with them. `viewer.mjs <address of the events> <token>`. */
import { setTimeout as sleep } from 'node:timers/promises'

const [address, token] = process.argv.slice(2)

for (;;) {
  try {
    const { body } = await fetch(address, { headers: { authorization: `Bearer ${token}` } })
    for await (const _chunk of body);
  } catch {
    // It does not listen yet, or not any more.
  }
  await sleep(100)
}
