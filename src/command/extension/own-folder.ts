/** The folder with the files of the built bridge. The build puts the folder of the bridge itself here. */
export const OWN_FOLDER = new URL('../../../dist/', import.meta.url)
