/**
 * What @peculiar/x509 wants of the proposal of metadata on classes before it can be loaded. Its own classes keep none, so
 * there is never any to be found.
 */
const found = () => undefined
for (const name of ['getMetadata', 'getOwnMetadata', 'defineMetadata']) {
  if (!(name in Reflect)) Object.defineProperty(Reflect, name, { value: found, configurable: true, writable: true })
}
