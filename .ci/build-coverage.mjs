/**
 * Builds as build.mjs does, except that dist/main.js runs the sources: then coverage sees them in the processes that tests start,
 * too. A source map of the bundle would not do: c8 counts lines of functions that never ran.
 */
import './build.mjs'
import { writeFileSync } from 'node:fs'

writeFileSync('dist/main.js', "import { register } from 'tsx/esm/api'\n\nregister()\nawait import('../src/main.ts')\n")
