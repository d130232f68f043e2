/** Why an entry of a client's file stays as it is. */
export class Unfit extends Error {
  override name = 'Unfit'
}
