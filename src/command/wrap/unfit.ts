/** The error that says why an entry of a client's file stays as it is. */
export class Unfit extends Error {
  override name = 'Unfit'
}
