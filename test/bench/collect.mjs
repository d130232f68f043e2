/**
 * Loaded before a program whose memory is measured, with `--expose-gc`: SIGUSR2 has it collect its garbage and return
 * memory that it does not need, as it would if memory were short. Alone, the first collection leaves some garbage: with
 * Node.js 20 a third of the heap after some minutes of load.
 */
process.on('SIGUSR2', () => {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  globalThis.gc?.()
})
