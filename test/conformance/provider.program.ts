/**
 * Program: an identity provider where clients cannot register, as in `../support/entra.ts`. It takes the port of the suite's
 * callback, and writes its issuer on a line when it listens.
 */
import { argv, stdout } from 'node:process'
import type { Test } from 'tap'
import { Entra } from '../support/entra.js'

// It ends with its process.
const entra = await Entra.start({ teardown: () => {} } as unknown as Test, [`http://127.0.0.1:${argv[2]}/callback`])
stdout.write(`${entra.issuer}\n`)
