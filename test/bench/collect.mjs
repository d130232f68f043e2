/** Loaded before a program whose memory is measured, with `--expose-gc`: SIGUSR2 has it collect its garbage. */
process.on('SIGUSR2', () => globalThis.gc?.())
