/** Where the inspector is on its address. */
export const INSPECT = '/inspect'
